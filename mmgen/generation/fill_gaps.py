"""A copy of a dataset with pictures that are drawn by analogy in the gaps of its words."""

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import numpy as np

from mmgen.artifacts import Dataset, DatasetWriter, parent_record
from mmgen.artifacts.dataset import PARTS
from mmgen.artifacts.elements import FILLED
from mmgen.core.errors import UsageError
from mmgen.core.progress import Progress, Work
from mmgen.core.seeding import numpy_generator
from mmgen.generation.analogies import Analogies, Analogy
from mmgen.modalities import ROWS
from mmgen.modalities.image import ImageDescription

MOST = 4096
"""Training pictures that analogies are drawn from at most; of more, a random choice."""
_CHUNK = 128


def read_analogies(data: Dataset, image: str, attributes: str, scheme: str, seed: int) -> tuple[Analogies, np.ndarray]:
    """Return analogies of the training pictures of a dataset, and their rows."""
    rows = data.split(scheme, "train", real=True)
    if len(rows) > MOST:
        rows = np.sort(numpy_generator(seed, "analogies").choice(rows, MOST, replace=False))
    pixels = (255 * data.read_pixels(image, rows)).round().astype(np.uint8)
    return Analogies(pixels, data.read_attributes(attributes, rows), seed), rows


def fill_gaps(
    source: Path, output: Path, split: str | None, number: int | None, least: float, seed: int, command: str
) -> Work[list[str]]:
    """Return work that writes the dataset ``source`` with its gaps filled, and returns lines for people.

    Args:
        source: Dataset file.
        output: File to write.
        split: Split scheme whose training part is filled; None for the default one.
        number: Pictures to add at most; None for as many as there are training pictures.
        least: Percentage of hidden pictures that must have been right for an attribute to be changed.
        seed: Seed of all choices.
        command: The command that makes the file again.

    Raises:
        UsageError: The dataset has no one kind of pictures with attributes, or its gaps are filled.
    """
    with Dataset.open(source) as data:
        if FILLED in data.factors:
            raise UsageError(
                f"{source} has its gaps filled already, expected a dataset of real pictures alone; use the one that it "
                "was made from"
            )
        image, attributes = find_pictures(data)
        scheme = split or data.default_scheme
        limit = number or len(data.split(scheme, "train", real=True))

    def fill() -> Generator[Progress, None, list[str]]:
        with Dataset.open(source) as data:
            analogies, rows = read_analogies(data, image, attributes, scheme, seed)
            lines: list[str] = []
            gaps = analogies.gaps
            drawn: list[Analogy] = []
            codes: list[tuple[int, ...]] = []
            each = max(1, round(len(rows) / max(1, analogies.cells)))  # as many as other combinations have
            for gap, found in analogies.fill_all(each, least):
                drawn += found
                codes += [gap] * len(found)
                yield Progress(min(limit, len(drawn)))
                if len(drawn) >= limit:
                    break
            drawn, codes = drawn[:limit], codes[:limit]
            lines += _describe_qualities(analogies, data.attributes[attributes].names, least)
            lines.append(
                f"{len(set(codes)):,} of {len(gaps):,} combinations without a training picture got "
                f"{len(drawn):,} pictures by analogy"
            )
            _write(
                data, output, image, attributes, scheme, drawn, np.array(codes, np.uint8), rows, lines, seed, command
            )
        return lines

    return Work("filling gaps", limit, "picture", fill)


def _describe_qualities(analogies: Analogies, names: Sequence[str], least: float) -> Iterator[str]:
    """Yield a line on each attribute that was changed in hidden pictures."""
    for alone, qualities in analogies.measured.items():
        others = " and ".join(names[attribute] for attribute in sorted(alone))
        where = f" where no other {others} is there" if alone else ""
        for attribute, each in qualities.items():
            verdict = "" if each.right >= least else f", fewer than {least:g} %, so it is not changed"
            yield (
                f"{names[attribute]}{where}: of {each.cells} hidden pictures drawn again, {each.right:.0f} % are "
                f"nearest to a real one of their words ({each.psnr:.1f} dB){verdict}"
            )


def find_pictures(data: Dataset) -> tuple[str, str]:
    """Return the names of the pictures and of their attributes."""
    kinds = [each.kind for each in data.modalities.values()]
    images = data.modalities_of(ImageDescription)
    plain = [name for name, each in images.items() if each.layout == "bytes"]
    if len(plain) != 1 or len(images) != 1 or len(data.attributes) != 1 or {*kinds} - {"image", "attributes", "text"}:
        raise UsageError(
            f"{data.path} has {', '.join(f'{name} ({each.kind})' for name, each in data.modalities.items())}, expected "
            "one kind of pictures in grey or colour, attributes, and at most captions beside them; leave fill-gaps out"
        )
    return plain[0], next(iter(data.attributes))


def _write(
    data: Dataset, output: Path, image: str, attributes: str, scheme: str, drawn: list[Analogy], codes: np.ndarray,
    rows: np.ndarray, notes: list[str], seed: int, command: str,
) -> None:  # fmt: skip
    added = len(drawn)
    settings = {**data.header.settings, "filled": scheme, "gaps": added}
    with DatasetWriter(
        output, data.size + added, settings, seed, command,
        parents=[parent_record(data.path, "dataset", output)], facts={"notes": notes},
    ) as writer:  # fmt: skip
        for described in data.modalities.values():
            writer.add(described)
        for name in data.factors:
            factor = data.factors[name]
            writer.add_factor(name, factor.dtype, factor.unit, factor.meaning, factor.shape)
        writer.add_factor(
            FILLED, np.int64, "row", "row of the picture from which one was drawn by analogy; -1 for real pictures"
        )
        factors = {name: data.read_factor(name) for name in data.factors}
        real = np.full(data.size, -1, np.int64)
        for start in range(0, data.size, _CHUNK):
            part = slice(start, min(data.size, start + _CHUNK))
            columns = {name: data.read_packed(name, part) for name in data.modalities}
            writer.write(start, columns, {name: each[part] for name, each in factors.items()} | {FILLED: real[part]})
        if added:
            pictures = (255 * np.stack([each.picture for each in drawn])).round().astype(np.uint8)
            columns = {image: pictures, attributes: codes}
            for name, text in data.texts.items():  # nothing is said of a drawn picture in free words
                stored = text.arrays()[ROWS]
                columns[name] = np.full((added, *stored.shape), len(text.vocabulary), stored.dtype)
            unknown = {
                name: np.full((added, *each.shape[1:]), np.nan if each.dtype.kind == "f" else -1).astype(each.dtype)
                for name, each in factors.items()
            }
            writer.write(data.size, columns, unknown | {FILLED: rows[[each.source for each in drawn]]})
        for name in data.schemes:
            parts = {part: data.split(name, part) for part in PARTS}
            if name == scheme:
                parts["train"] = np.r_[parts["train"], data.size + np.arange(added)]
            writer.add_splits(name, **parts, meaning=data.scheme_meaning(name))
