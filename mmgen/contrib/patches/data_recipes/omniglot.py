"""OMNIGLOT: handwritten characters of up to fifty alphabets, described by their alphabet.

References:
    Human-level concept learning through probabilistic program induction (Lake, Salakhutdinov, Tenenbaum, 2015),
    https://doi.org/10.1126/science.aab3050
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Section 5
"""

import hashlib
import io
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.notation import UNKNOWN
from mmgen.core.pictures import decode_picture
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, chunk_indices, write_rows
from mmgen.data_recipes._digits import LAYOUTS, Binarise, binarise, pack_bits
from mmgen.data_recipes._own._files import Files
from mmgen.data_recipes._published import (
    SourceComparison,
    comparison_notes,
    different_source,
    file_md5,
    published_source,
    unverified_source,
)
from mmgen.data_recipes._streams import SplitScheme, parts_with_held_out, random_order, split_by_group, stream_keys

__all__ = ["Omniglot"]

SIDE = 28
"""Height and width of a picture."""

_DRAWN = 105
"""Height and width of an original drawing."""

_MATRIX = "chardata.mat"
_ZIPS = (("images_background.zip", 0), ("images_evaluation.zip", 1))
_SMALL = (("images_background_small1.zip", 0), ("images_background_small2.zip", 0))
_EXPECTED = (
    f"{_MATRIX} (28 x 28), or the zips images_background.zip and images_evaluation.zip of "
    "https://github.com/brendenlake/omniglot"
)
_TITLE = "OMNIGLOT"
_COUNTS = {
    _MATRIX: [24_345, 8_070],
    "images_background.zip": [19_280],
    "images_evaluation.zip": [13_180],
    "images_background_small1.zip": [2_720],
    "images_background_small2.zip": [3_120],
}
_MD5 = {
    "images_background.zip": "68d2efa1b9178cc56df9314c21c6e718",
    "images_evaluation.zip": "6b91aef0f799c5bb55b94e3f2daec811",
    "images_background_small1.zip": "e704a628b5459e08445c13499850abc4",
    "images_background_small2.zip": "b75a71a51d3b13f821f212756fe481fd",
}
_MEMBER = re.compile(r"(?:.*/)?([^/]+)/character([0-9]{1,3})/([0-9]{4}_[0-9]{2})\.png")
_MOST_MATRIX = 2**28
_MOST_CHARACTERS = 200_000
_MOST_MEMBER = 2**16
_AT_ONCE = 1024


@dataclass(frozen=True)
class Characters:
    """S handwritten characters with their alphabets and parts.

    Attributes:
        images: uint8 [S, 28, 28], ink bright on black: 255 times the probability that a pixel is inked.
        alphabet: uint8 [S], code of the alphabet; 255 where the file tells none.
        alphabets: Names of the alphabets.
        character: uint16 [S], number of the character in its alphabet, from 1; 0 where the file tells none.
        part: uint8 [S], 0 for training, 1 for test.
        pictures: Kind of the pictures, in words.
        content: Whether they are the published ones.
    """

    images: NDArray[np.uint8]
    alphabet: NDArray[np.uint8]
    alphabets: tuple[str, ...]
    character: NDArray[np.uint16]
    part: NDArray[np.uint8]
    pictures: str
    content: SourceComparison

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def sha256(self) -> str:
        """Hash of all arrays."""
        digest = hashlib.sha256()
        for array in (self.images, self.alphabet, self.character, self.part):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def box_mean(ink: NDArray[np.bool_], side: int = SIDE) -> NDArray[np.uint8]:
    """Average ink over side x side boxes: bool [n, H, W] to uint8 [n, side, side], 255 for full ink."""
    # A box has 3.75 x 3.75 of the original pixels; those on its border count by the area that is inside.
    down, across = (_overlaps(length, side) for length in ink.shape[1:])
    means = np.einsum("ih,nhw,jw->nij", down, ink.astype(np.float32), across, optimize=True)
    shares: NDArray[np.uint8] = np.rint(255 * means).astype(np.uint8)
    return shares


def _overlaps(length: int, boxes: int) -> NDArray[np.float32]:
    """Return the share of each of ``boxes`` equal intervals that each of ``length`` pixels covers [boxes, length]."""
    edges = np.arange(boxes + 1) * (length / boxes)
    pixels = np.arange(length)
    inside = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    shares: NDArray[np.float32] = (np.clip(inside, 0, None) * (boxes / length)).astype(np.float32)
    return shares


def read_characters(path: Path | None) -> Characters:
    """Read the characters of ``chardata.mat``, of a zip, or of a folder with one of them.

    Raises:
        DataError: The file is missing or malformed.
    """
    if path is None:
        raise DataError(
            f"the recipe omniglot needs your own copy: get {_EXPECTED} and name file or folder by --omniglot"
        )
    if path.is_dir():
        matrix = [path / _MATRIX] if (path / _MATRIX).is_file() else []
        whole = [(path / name, part) for name, part in _ZIPS if (path / name).is_file()]
        zips = whole or [(path / name, part) for name, part in _SMALL if (path / name).is_file()]
        if matrix and zips:
            raise DataError(f"{path} holds {_MATRIX} and {zips[0][0].name}, expected one of them; name the file itself")
        if not matrix and not zips:
            raise DataError(f"{path} holds no OMNIGLOT, expected {_EXPECTED}")
        return _read_matrix(matrix[0]) if matrix else _read_zips(zips)
    if not path.exists():
        raise DataError(f"there is no file or folder {path}, expected {_EXPECTED}")
    if path.suffix == ".zip":
        return _read_zips([(path, dict(_ZIPS).get(path.name, 0))])
    return _read_matrix(path)


def _read_matrix(path: Path) -> Characters:
    """Read ``chardata.mat``: pictures in columns, each column by column, as numbers from 0 to 1."""
    from scipy.io import loadmat, whosmat

    expected = f"{_MATRIX} with 'data' and 'testdata' of 784 numbers from 0 to 1 for each picture"
    try:
        file = io.BytesIO(read_file(path, _MOST_MATRIX))
        shapes = {name: shape for name, shape, _ in whosmat(file)}
        for name in ("data", "testdata"):
            shape = shapes.get(name, ())
            if len(shape) != 2 or shape[0] != SIDE**2 or not 0 < shape[1] <= _MOST_CHARACTERS:
                raise CannotReadError(f"its '{name}' has shape {list(shape)}")
        labels = {n for n in ("target", "testtarget", "targetchar", "testtargetchar") if len(shapes.get(n, ())) == 2}
        small = {name for name in labels if max(shapes[name]) <= _MOST_CHARACTERS and min(shapes[name]) < UNKNOWN}
        file.seek(0)
        matrices = loadmat(file, variable_names=["data", "testdata", *small])
    except CannotReadError as error:
        raise DataError(f"cannot read {path}: {error}, expected {expected}") from None
    except Exception as error:  # SciPy raises whatever a damaged file leads it to
        why = CannotReadError.from_error(error)
        raise DataError(f"cannot read {path} as a Matlab file ({why}), expected {expected}") from None
    images, parts, alphabets, characters = [], [], [], []
    for part, prefix in enumerate(("", "test")):
        values = matrices[f"{prefix}data"].T  # [n, 784]
        if values.dtype.kind not in "fiub" or not ((values >= 0) & (values <= 1)).all():
            raise DataError(f"{path} has numbers outside 0 to 1 in '{prefix}data', expected {expected}")
        columns = values.reshape(-1, SIDE, SIDE).transpose(0, 2, 1)
        images.append(np.rint(255 * columns).astype(np.uint8))
        parts.append(np.full(len(values), part, np.uint8))
        alphabets.append(_alphabet_codes(matrices.get(f"{prefix}target"), len(values)))
        characters.append(_character_numbers(matrices.get(f"{prefix}targetchar"), len(values)))
    alphabet = np.concatenate(alphabets)
    known = alphabet[alphabet != UNKNOWN]
    names = tuple(f"alphabet-{number + 1:02}" for number in range(int(known.max()) + 1 if len(known) else 1))
    return Characters(
        np.concatenate(images),
        alphabet,
        names,
        np.concatenate(characters),
        np.concatenate(parts),
        f"{_MATRIX}, 28 x 28 as published, levels rounded to 1 / 255",
        _compare_counts(path, [len(part) for part in parts], _COUNTS[_MATRIX]),
    )


def _alphabet_codes(target: NDArray[np.generic] | None, number: int) -> NDArray[np.uint8]:
    """Return the alphabet code of each character [n] by a one-hot table [alphabets, n]; unknown for other tables."""
    if target is not None and target.ndim == 2 and target.shape[1] != number:
        raise DataError(
            f"{_MATRIX} holds {number} drawings and labels of {target.shape[1]}, expected as many; download it again"
        )
    if target is None or target.dtype.kind not in "fiub" or target.ndim != 2:
        return np.full(number, UNKNOWN, np.uint8)
    table = target.astype(np.float64)
    if not (((table == 0) | (table == 1)).all() and (table.sum(0) == 1).all()):
        return np.full(number, UNKNOWN, np.uint8)
    return table.argmax(0).astype(np.uint8)


def _character_numbers(numbers: NDArray[np.generic] | None, number: int) -> NDArray[np.uint16]:
    """Return numbers of characters [n] from a row [1, n]; all 0 for another array."""
    if numbers is None or numbers.dtype.kind not in "fiub" or numbers.shape != (1, number):
        return np.zeros(number, np.uint16)
    return np.clip(np.nan_to_num(numbers[0].astype(np.float64)), 0, 2**16 - 1).astype(np.uint16)


def _read_zips(files: Sequence[tuple[Path, int]]) -> Characters:
    """Read the original drawings from zips, each drawing once, sorted by alphabet, character and drawer."""
    images: list[NDArray[np.uint8]] = []
    facts: list[tuple[str, int, int]] = []
    waiting: list[NDArray[np.bool_]] = []
    taken: set[tuple[str, str]] = set()
    for path, part in files:
        for alphabet, character, drawing, ink in _read_drawings(path):
            if (alphabet, drawing) in taken:
                continue
            taken.add((alphabet, drawing))
            facts.append((alphabet, character, part))
            waiting.append(ink)
            if len(waiting) == _AT_ONCE:
                images.append(box_mean(np.stack(waiting)))
                waiting.clear()
    if waiting:
        images.append(box_mean(np.stack(waiting)))
    names = tuple(sorted({alphabet for alphabet, _, _ in facts}))
    if len(names) > UNKNOWN:
        raise DataError(f"{files[0][0]} has {len(names)} alphabets, expected at most {UNKNOWN}")
    return Characters(
        np.concatenate(images),
        np.array([names.index(alphabet) for alphabet, _, _ in facts], np.uint8),
        names,
        np.array([character for _, character, _ in facts], np.uint16),
        np.array([part for _, _, part in facts], np.uint8),
        f"{', '.join(path.name for path, _ in files)}, box means of 105 x 105 drawings at 28 x 28",
        _compare_zips([path for path, _ in files], len(facts)),
    )


def _compare_zips(paths: Sequence[Path], drawings: int) -> SourceComparison:
    if all(_MD5.get(path.name) == file_md5(path) for path in paths):
        return published_source(_TITLE, paths[0].parent)
    return _compare_counts(paths[0], [drawings], [sum(_COUNTS.get(path.name, [0])[0] for path in paths)])


def _compare_counts(path: Path, counts_here: Sequence[int], published: Sequence[int]) -> SourceComparison:
    """Compare the numbers of training and test drawings with those of the published set."""
    if list(counts_here) != list(published):
        counts = [" and ".join(f"{number:,}" for number in numbers) for numbers in (counts_here, published)]
        if not any(published):  # of a zip of another name
            counts[1] = "the number of one of the published zips"
        return different_source(_TITLE, path, f"it has {counts[0]} drawings, expected {counts[1]}")
    return unverified_source(_TITLE, path, "drawings are counted, and not compared")


def _read_drawings(path: Path) -> Iterator[tuple[str, int, str, NDArray[np.bool_]]]:
    """Yield alphabet, character, name and ink [105, 105] of every drawing in a zip, sorted by name."""
    files = Files(path)
    try:
        matches = [(name, match) for name in files.names if (match := _MEMBER.fullmatch(files.common_folder + name))]
        if not 0 < len(matches) <= _MOST_CHARACTERS:
            raise DataError(
                f"{path} holds {len(matches)} drawings, expected at least one ALPHABET/characterNN/NNNN_NN.png; "
                "download it again"
            )
        for name, match in matches:
            try:
                data = files.read(name, _MOST_MEMBER)
                ink = np.asarray(decode_picture(data, "L", size=(_DRAWN, _DRAWN), formats=["PNG"])) < 128
            except CannotReadError as error:
                raise DataError(f"cannot read {files.describe_file(name)}: {error}; download it again") from None
            yield match[1], int(match[2]), match[3], ink
    finally:
        files.close()


_BURDAS = 24_345
_HELD_OUT, _SEED = 1_345, 123


class Omniglot(Recipe):
    """OMNIGLOT characters of 28 x 28 from the user's own copy.

    Published likelihoods are of ``chardata.mat``. The original drawings of 105 x 105 become the mean ink of 28 x 28
    boxes, which is another picture of the same strokes: the file says which of the two it holds, and their scores are
    not to be compared.
    """

    omniglot: Annotated[Path | None, Field(exclude=True)] = None
    """Your copy of OMNIGLOT: chardata.mat, images_background.zip, or a folder with either."""

    number: Annotated[int | None, Field(ge=20)] = None
    """Characters to use, spread evenly over all; all by default."""

    binarise: Binarise = "dynamic"
    """Draw every pixel black or white, once, with its level as probability, or keep the levels. "dynamic" keeps them as
    probabilities: every view in training and evaluation is a new draw (Burda et al., 2016)."""

    name: ClassVar[str] = "omniglot"

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        characters = read_characters(self.omniglot)
        size = min(self.number or len(characters), len(characters))
        source = np.arange(size) * len(characters) // size

        def make_rows(indices: NDArray[np.int64]) -> Rows:
            which = source[indices]
            images = characters.images[which]
            if self.binarise is True:
                stored = pack_bits(binarise(images, stream_keys(seed, self.name, indices)))
            else:
                stored = images[:, None]
            factors: dict[str, NDArray[Any]] = {
                "character": characters.character[which],
                "source": which.astype(np.uint32),
                "source_part": characters.part[which],
            }
            return Rows({"image": stored, "attributes": characters.alphabet[which, None]}, factors)

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": self.name, **self.model_dump(), "number": size, "pictures": characters.pictures}
            settings |= {"source_sha256": characters.sha256, **characters.content.settings}
            with DatasetWriter(path, size=size, settings=settings, seed=seed, command=command) as writer:
                writer.add_image("image", (1, SIDE, SIDE), LAYOUTS[self.binarise])
                writer.add_attributes("attributes", {"alphabet": characters.alphabets})
                writer.add_factor("character", "uint16", "", "number of the character in its alphabet; 0 is unknown")
                writer.add_factor("source", "uint32", "", "number of the character in the source, training ones first")
                writer.add_factor("source_part", "uint8", "", "0: one of the training characters, 1: of the test ones")
                yield from write_rows(writer, map(make_rows, chunk_indices(size, chunk)))
                for scheme, (meaning, parts) in _split_schemes(characters, source, seed).items():
                    writer.add_splits(scheme, **parts, meaning=meaning)
            return path

        return Work(f"making {self.name}", size, "image", write_dataset, comparison_notes(characters.content))


def _split_schemes(characters: Characters, source: NDArray[np.int64], seed: int) -> dict[str, SplitScheme]:
    """Return split schemes by name; "official" if the source has a test part."""
    size, part = len(source), characters.part[source]
    schemes: dict[str, SplitScheme] = {
        "iid": ("85/5/10 % of the drawings", split_by_group(np.arange(size), size, seed, "iid")),
    }
    if len(np.unique(part)) < 2:
        return schemes
    training = np.flatnonzero(characters.part == 0)
    if len(training) == _BURDAS:
        # As the authors' published code does it: the last of an order drawn by numpy's old generator.
        val = training[np.random.RandomState(_SEED).permutation(_BURDAS)[-_HELD_OUT:]]
        meaning = (
            f"the publisher's test characters; of the training ones {_HELD_OUT:,} are val, as in Burda et al. (2016)"
        )
    else:
        val = training[random_order(seed, "split official", len(training))[: max(1, len(training) // 18)]]
        meaning = "the publisher's test characters; of the training ones one in eighteen is val"
    return {**schemes, "official": (meaning, parts_with_held_out(part, np.isin(source, val)))}
