"""Patches: small squares of natural pictures, to compare densities of real numbers.

References:
    A Database of Human Segmented Natural Images (Martin, Fowlkes, Tal, Malik, ICCV 2001): the Berkeley pictures
    RNADE: The real-valued neural autoregressive density-estimator (Uria, Murray, Larochelle, 2013), arXiv:1306.0186,
    Section 5.2: what is done with their patches
"""

from collections.abc import Generator
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from mmgen.core.errors import DataError
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Workers
from mmgen.data_recipes._patches import Patches, cut_patches, find_pictures, read_patches
from mmgen.data_recipes._published import comparison_notes
from mmgen.data_recipes._streams import PARTS, Parts, random_order, split_by_group
from mmgen.modalities.patch import PatchDescription

__all__ = ["NaturalPatches"]

_BERKELEY = (200, 100)
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
                _yield_nothing(cut), path, seed, chunk, command, len(cut.levels), comparison_notes(cut.content)
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
        return Patches(
            cut.levels[rows], cut.picture[rows], cut.row[rows], cut.column[rows], cut.part, cut.sha256,
            cut.content,
        )  # fmt: skip

    def _make_dataset_work(
        self,
        cutting: Generator[int, None, Patches],
        path: Path,
        seed: int,
        chunk: int,
        command: str,
        size: int,
        notes: list[str],
    ) -> Work[Path]:
        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            cut = yield from _report_count(cutting)
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
                for start in range(0, number, chunk):
                    rows = slice(start, min(start + chunk, number))
                    places = {"picture": cut.picture[rows], "row": cut.row[rows], "column": cut.column[rows]}
                    writer.write(start, {"patch": cut.levels[rows]}, places)
                for scheme, (meaning, parts) in schemes.items():
                    writer.add_splits(scheme, **parts, meaning=meaning)
            return path

        return Work("cutting patches", size, "patch", write_dataset, notes)


def _yield_nothing(cut: Patches) -> Generator[int, None, Patches]:
    """Return finished patches through a generator, as :func:`cut_patches` does."""
    yield len(cut.levels)
    return cut


def _report_count(cutting: Generator[int, None, Patches]) -> Generator[Progress, None, Patches]:
    """Run a generator, yield the numbers that it yields as progress, and return its patches."""
    while True:
        try:
            yield Progress(next(cutting))
        except StopIteration as stop:
            cut: Patches = stop.value
            return cut


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
    if (len(train), len(middle)) == _BERKELEY:
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
