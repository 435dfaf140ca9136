"""Patches: small squares of natural pictures, to compare densities of real numbers.

References:
    A Database of Human Segmented Natural Images (Martin, Fowlkes, Tal, Malik, ICCV 2001): the Berkeley pictures
    RNADE: The real-valued neural autoregressive density-estimator (Uria, Murray, Larochelle, 2013), arXiv:1306.0186,
    Section 5.2: what is done with their patches
"""

import hashlib
import io
import posixpath
import zipfile
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from mmgen.contrib.patches.modalities.patch import PatchDescription
from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError, open_zip, read_member
from mmgen.core.memory import check_memory
from mmgen.core.pictures import MOST_BYTES, decode_picture
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, chunk_indices, write_rows
from mmgen.data_recipes._own._files import Files
from mmgen.data_recipes._published import SourceComparison, comparison_notes, different_source, unverified_source
from mmgen.data_recipes._streams import (
    PARTS,
    Parts,
    part_of,
    random_bits,
    random_integers,
    random_order,
    split_by_group,
    stream_keys,
)

__all__ = ["NaturalPatches"]

UNKNOWN_PART = 255
"""Code of the unknown part of a picture; other codes are places in ``PARTS``."""

_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".webp", ".gif")
_LEAST_PICTURES = 20
_BERKELEY = (
    "3f2107720e7a0f79389e126d14e6a8772e1e3204a4755e7b78455ea42ecd9f83",
    "b8db0dc521e0c541a6a030826e19af713b7cb2287a6a5528d4dee2b9d8e78fee",
)
"""SHA-256 of the numbers of BSDS300's training and test pictures, ascending, with blanks between them."""
_LARGEST = 2**31
_ARRAYS = ("train", "train_image", "test", "test_image")
_EXPECTED = (
    "expected an .npz archive of train and test, uint8 patches [N, 8, 8], and train_image and test_image, the number "
    "of the picture of each"
)


@dataclass(frozen=True)
class Patches:
    """N square grey patches, ordered by the pictures from which they were cut.

    Attributes:
        levels: uint8 [N, side, side].
        picture: Number of the picture of each [N], from 0.
        row: First row of each in its picture [N], -1 where it is not known.
        column: First column likewise.
        part: The publisher's part of each picture, by its number: a place in ``PARTS``, or 255.
        sha256: Hash of the grey pictures, or of the patches of an archive.
        content: Whether the pictures are those of BSDS300, where there are as many.
    """

    levels: NDArray[np.uint8]
    picture: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    part: NDArray[np.uint8]
    sha256: str
    content: SourceComparison | None


@dataclass(frozen=True)
class PatchSource:
    """Pictures in a folder or zip from which patches are cut.

    Attributes:
        files: The folder or zip.
        names: The pictures, sorted.
        part: The publisher's part of each, a place in ``PARTS``, or 255.
        elsewhere: Number of pictures that are left out, as they lie in no part while others do.
        content: Whether they are those of BSDS300, where there are as many.
    """

    files: Files
    names: tuple[str, ...]
    part: NDArray[np.uint8]
    elsewhere: int
    content: SourceComparison | None


def find_pictures(path: Path) -> PatchSource:
    """Find the pictures of a folder or a zip, with the publisher's parts by folder.

    Raises:
        DataError: There are fewer than 20 pictures.
    """
    files = Files(path)
    pictures = [name for name in files.names if name.lower().endswith(_SUFFIXES)]
    parts = {name: part_of(posixpath.basename(posixpath.dirname(files.common_folder + name))) for name in pictures}
    in_parts, total = [name for name in pictures if parts[name]], len(pictures)
    if {*parts.values()} >= {"train", "test"}:
        pictures = in_parts
        part = np.array([PARTS.index(parts[name]) for name in pictures], np.uint8)
    else:
        part = np.full(len(pictures), UNKNOWN_PART, np.uint8)
    if len(pictures) < _LEAST_PICTURES:
        files.close()
        known = ", ".join(suffix[1:] for suffix in _SUFFIXES[:3])
        raise DataError(
            f"{path} holds {len(pictures)} picture{'s' * (len(pictures) != 1)} ({known} and others), "
            f"expected at least {_LEAST_PICTURES}: parts of a split share no picture; name another folder"
        )
    stems = np.array([posixpath.splitext(posixpath.basename(name))[0] for name in pictures])
    return PatchSource(files, tuple(pictures), part, total - len(pictures), _compare_names(path, stems, part))


def _compare_names(path: Path, names: NDArray[Any], part: NDArray[np.uint8]) -> SourceComparison | None:
    """Compare with the published sets by the names of pictures [N]; BSDS500 has BSDS300's pictures as train and val."""
    names_by_part = [names[part == PARTS.index(one)] for one in PARTS]
    tested = names_by_part[1] if len(names_by_part[1]) else names_by_part[2]
    if (len(names_by_part[0]), len(tested)) != (200, 100):
        return None
    for some, sha256 in zip((names_by_part[0], tested), _BERKELEY, strict=True):
        numbers = " ".join(sorted(map(str, some), key=lambda name: (len(name), name)))
        if hashlib.sha256(numbers.encode()).hexdigest() != sha256:
            return different_source("BSDS300", path, "it has as many pictures, of other numbers")
    return unverified_source("BSDS300", path, "numbers of pictures are as published, pixels are not compared")


def cut_patches(
    source: PatchSource, side: int, counts: NDArray[np.int64], seed: int
) -> Generator[Progress, None, Patches]:
    """Cut grey patches (ITU-R 601 luma) at random places of every picture and return them; yields progress.

    Args:
        source: The pictures.
        side: Height and width of a patch in pixels.
        counts: Number of patches of each picture.
        seed: Seed of the places.

    Raises:
        DataError: A picture cannot be read, or is smaller than a patch.
    """
    total = int(counts.sum())
    check_memory(total * side**2, f"{total:,} patches of {side} x {side}", "use a smaller --per-picture")
    keys = stream_keys(seed, "patches", np.arange(total))
    levels = np.empty((total, side, side), np.uint8)
    row, column = np.empty(total, np.int64), np.empty(total, np.int64)
    digest, start = hashlib.sha256(), 0
    for name, count in zip(source.names, counts.tolist(), strict=True):
        try:
            grey = np.asarray(decode_picture(source.files.read(name, MOST_BYTES), "L"))
            if min(grey.shape) < side:
                raise CannotReadError(f"it has {grey.shape[1]} x {grey.shape[0]} pixels, expected {side} x {side}")
        except CannotReadError as error:
            raise DataError(f"cannot cut patches from {source.files.describe_file(name)}: {error}; remove it") from None
        digest.update(np.array(grey.shape, np.int64).tobytes() + grey.tobytes())
        rows = slice(start, start + count)
        row[rows] = random_integers(random_bits(keys[rows], 0), grey.shape[0] - side + 1)
        column[rows] = random_integers(random_bits(keys[rows], 1), grey.shape[1] - side + 1)
        windows = np.lib.stride_tricks.sliding_window_view(grey, (side, side))
        levels[rows] = windows[row[rows], column[rows]]
        start += count
        yield Progress(start)
    picture = np.repeat(np.arange(len(counts)), counts)
    return Patches(levels, picture, row, column, source.part, digest.hexdigest(), source.content)


def read_patches(path: Path) -> Patches:
    """Read an ``.npz`` archive of patches as arrays; nothing in it is unpickled.

    Raises:
        DataError: The archive is missing or malformed.
    """
    try:
        with open_zip(path) as archive:
            train, train_image, test, test_image = (_read_array(archive, name) for name in _ARRAYS)
        for levels, image in ((train, train_image), (test, test_image)):
            if levels.dtype != np.uint8 or levels.ndim != 3 or levels.shape[1] != levels.shape[2] or not len(levels):
                raise CannotReadError(f"its patches are {levels.dtype} {list(levels.shape)}")
            if image.dtype.kind not in "iu" or image.shape != levels.shape[:1]:
                raise CannotReadError(f"it has numbers of pictures {image.dtype} {list(image.shape)}")
        if train.shape[1:] != test.shape[1:]:
            sides = [f"{part.shape[1]} x {part.shape[2]}" for part in (train, test)]
            raise CannotReadError(f"its train patches are {sides[0]} and its test patches {sides[1]} pixels")
        if len(shared := np.intersect1d(train_image, test_image)):
            raise CannotReadError(
                f"train_image and test_image share {len(shared):,} numbers of pictures, such as {shared[0]}, and "
                "no picture may be in both parts"
            )
    except CannotReadError as error:
        raise DataError(f"cannot read the patches {path}: {error}; {_EXPECTED}") from None
    levels, image = np.concatenate([train, test]), np.concatenate([train_image, test_image]).astype(np.int64)
    names, picture = np.unique(image, return_inverse=True)
    part = np.where(np.isin(names, train_image), 0, PARTS.index("test")).astype(np.uint8)
    if len(names) < _LEAST_PICTURES:
        raise DataError(
            f"{path} has patches of {len(names)} picture{'s' * (len(names) != 1)}, expected at least {_LEAST_PICTURES}"
        )
    unknown = np.full(len(levels), -1, np.int64)
    digest = hashlib.sha256(levels.tobytes() + image.tobytes()).hexdigest()
    return Patches(levels, picture.reshape(-1), unknown, unknown, part, digest, _compare_names(path, names, part))


def _read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read the array ``name`` of an ``.npz`` archive."""
    try:
        data = read_member(archive, archive.getinfo(f"{name}.npy"), _LARGEST)
        values: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except KeyError:
        raise CannotReadError(f"it has no array {name}") from None
    except (ValueError, EOFError, OverflowError, MemoryError, SyntaxError, TypeError):
        raise CannotReadError(f"its {name} is no array of numbers") from None
    return values


_BERKELEY_COUNTS = (200, 100)
"""Training and test pictures of BSDS300, which are BSDS500's train and val."""

_HELD_OUT = 10  # one in 10 training pictures is val

_FACTORS = {
    "picture": "number of the picture, sorted by name",
    "row": "first row in the picture, -1 where it is not known",
    "column": "first column in the picture, -1 where it is not known",
}


class NaturalPatches(Recipe):
    """Grey squares from uniform places of the user's pictures; parts of a split share no picture.

    Bytes are stored. A model sees (v + u) / 256 less the patch's mean without the last pixel, u drawn anew at every
    view in training, and once for all evaluations.
    """

    pictures: Annotated[Path | None, Field(exclude=True)] = None
    """Folder or zip of pictures: BSDS300 or BSDS500 with images/train and images/test, or any others."""

    patches: Annotated[Path | None, Field(exclude=True)] = None
    """Archive .npz of patches that were cut before: train, train_image, test, test_image; instead of pictures."""

    side: Annotated[int, Field(ge=2, le=64)] = 8
    """Height and width of a patch in pixels."""

    per_picture: Annotated[int, Field(ge=1)] = 500
    """Patches of each picture; of an archive all are taken."""

    number: Annotated[int | None, Field(ge=20)] = None
    """Patches in all, evenly from the pictures; of an archive a random choice."""

    name: ClassVar[str] = "patches"

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.pictures is None) == (self.patches is None):
            got = "both" if self.pictures is not None else "neither"
            raise ValueError(
                f"got {got} of --pictures, a folder or zip of pictures, and --patches, an .npz of patches; give one"
            )
        if self.patches is not None and {"side", "per_picture"} & self.model_fields_set:
            raise ValueError("--side and --per-picture are for --pictures; an archive's patches were cut before")
        if self.number is not None and "per_picture" in self.model_fields_set:
            raise ValueError("--number and --per-picture both set the number of patches; give one of them")
        return self

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        if self.patches is not None:
            cut = self._select_patches(read_patches(self.patches), seed)
            return self._make_dataset_work(
                cut, path, seed, chunk, command, len(cut.levels), comparison_notes(cut.content)
            )
        assert self.pictures is not None
        source = find_pictures(self.pictures)
        counts = np.full(len(source.names), self.per_picture)
        if self.number is not None:
            share, rest = divmod(self.number, len(source.names))
            counts = share + (np.arange(len(source.names)) < rest)
        notes = comparison_notes(source.content)
        if source.elsewhere:
            notes.append(f"left out: {source.elsewhere:,} pictures that are in none of the folders train, val and test")
        cutting = cut_patches(source, self.side, counts, seed)
        return self._make_dataset_work(cutting, path, seed, chunk, command, int(counts.sum()), notes)

    def _select_patches(self, cut: Patches, seed: int) -> Patches:
        """Select ``number`` patches at random, in their order; all without a number."""
        size = len(cut.levels)
        if self.number is None or self.number >= size:
            return cut
        rows = np.sort(random_order(seed, self.name, size)[: self.number])
        chosen = {name: getattr(cut, name)[rows] for name in ("levels", "picture", "row", "column")}
        return replace(cut, **chosen)

    def _make_dataset_work(
        self,
        cutting: Patches | Generator[Progress, None, Patches],
        path: Path,
        seed: int,
        chunk: int,
        command: str,
        size: int,
        notes: list[str],
    ) -> Work[Path]:
        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            cut = cutting if isinstance(cutting, Patches) else (yield from cutting)
            number, side = cut.levels.shape[:2]
            schemes = _split_schemes(cut, seed)
            settings = {
                "recipe": self.name,
                "source": "pictures" if self.pictures is not None else "patches",
                "side": side,
                "number": number,
                "pictures": len(cut.part),
                "source_sha256": cut.sha256,
                **(cut.content.settings if cut.content is not None else {}),
            }
            with DatasetWriter(path, size=number, settings=settings, seed=seed, command=command) as writer:
                writer.add(PatchDescription(side=side))
                for name, meaning in _FACTORS.items():
                    writer.add_factor(name, "int32", "" if name == "picture" else "pixel", meaning)
                chunks = (
                    Rows(
                        {"patch": cut.levels[rows]},
                        {"picture": cut.picture[rows], "row": cut.row[rows], "column": cut.column[rows]},
                    )
                    for rows in chunk_indices(number, chunk)
                )
                for _ in write_rows(writer, chunks):
                    pass  # patches were counted as they were cut
                for scheme, (meaning, parts) in schemes.items():
                    writer.add_splits(scheme, **parts, meaning=meaning)
            return path

        return Work("cutting patches", size, "patch", write_dataset, notes)


def _split_schemes(cut: Patches, seed: int) -> dict[str, tuple[str, Parts]]:
    """Return split schemes by name, the publisher's or else by picture; the patches of a picture are in one part."""
    code = {part: number for number, part in enumerate(PARTS)}
    pictures = np.arange(len(cut.part))
    train, test = pictures[cut.part == code["train"]], pictures[cut.part == code["test"]]
    if not len(train):
        parts = split_by_group(cut.picture, len(pictures), seed, "iid")
        return _check_parts_are_filled({"iid": ("85/5/10 % of the pictures", parts)})
    order = random_order(seed, "split patches", len(train))
    held = train[order[: max(1, len(train) // _HELD_OUT)]]
    meaning_of_val = f"one in {_HELD_OUT} training pictures is val"
    middle = pictures[cut.part == code["val"]]
    schemes = {}
    if (len(train), len(middle)) == _BERKELEY_COUNTS:
        meaning = f"BSDS300's training and test pictures, the latter BSDS500's val; {meaning_of_val}"
        schemes["bsds300"] = (meaning, _parts_by_picture(cut.picture, np.setdiff1d(train, held), held, middle))
    if len(middle):
        parts = _parts_by_picture(cut.picture, train, middle, test)
        return _check_parts_are_filled(
            {**schemes, "official": ("the publisher's training, validation and test pictures", parts)}
        )
    parts = _parts_by_picture(cut.picture, np.setdiff1d(train, held), held, test)
    return _check_parts_are_filled(
        {"official": (f"the publisher's training and test pictures; {meaning_of_val}", parts)}
    )


def _parts_by_picture(
    picture: NDArray[np.int64], train: NDArray[np.int64], val: NDArray[np.int64], test: NDArray[np.int64]
) -> Parts:
    pictures = {"train": train, "val": val, "test": test}
    return {name: np.flatnonzero(np.isin(picture, numbers)) for name, numbers in pictures.items()}


def _check_parts_are_filled(schemes: dict[str, tuple[str, Parts]]) -> dict[str, tuple[str, Parts]]:
    for scheme, (_, parts) in schemes.items():
        for part, rows in parts.items():
            if not len(rows):
                raise DataError(f"no patch is in part {part} of split {scheme}; use a larger --number")
    return schemes
