"""dSprites: squares, ellipses and hearts of every size, angle and place, to see which factors a model finds.

References:
    dSprites: Disentanglement testing sprites dataset (Matthey, Higgins, Hassabis, Lerchner, 2017)
    beta-VAE: Learning Basic Visual Concepts with a Constrained Variational Framework (Higgins et al., 2017)
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Workers, map_in_order
from mmgen.data_recipes._published import comparison_notes
from mmgen.data_recipes._splits import split_by_group
from mmgen.data_recipes._sprites import (
    COLUMNS,
    ORIENTATIONS,
    POSITIONS,
    ROWS,
    SCALES,
    SHAPES,
    SIDE,
    SpriteArchive,
    render_sprites,
)
from mmgen.data_recipes._streams import random_order

__all__ = ["Dsprites"]

_FACTORS = {
    "shape": "0 square, 1 ellipse, 2 heart",
    "scale": "0.5 + 0.1 i of the largest",
    "orientation": "angle 2 pi i / 39, counter-clockwise as seen",
    "x": "number of the column of places, from the left",
    "y": "number of the row of places, from the top",
}
_SIZES = (len(SHAPES), len(SCALES), ORIENTATIONS, COLUMNS, ROWS)
_WHOLE = int(np.prod(_SIZES))


class Dsprites(Recipe):
    """One white sprite on black, 64 x 64: every combination of five factors, drawn anew or read from your own copy.

    Drawn pictures follow the published geometry: they differ from 320 published ones by 0.8 of 4,096 pixels on average,
    by 5 at most. The file says which of the two it holds.
    """

    dsprites: Annotated[Path | None, Field(exclude=True)] = None
    """Your copy of the published archive, dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz; drawn anew where left out."""

    orientations: Literal[39, 40] = 40
    """40 as published, where the last angle is the first one again (18,432 pictures are there twice), or 39 without."""

    number: Annotated[int | None, Field(ge=20, le=_WHOLE)] = None
    """Number of pictures, a random choice of all combinations; all by default."""

    name: ClassVar[str] = "dsprites"

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        archive = None if self.dsprites is None else SpriteArchive(self.dsprites)
        content = None if archive is None else archive.content()
        combinations = self._select_combinations(seed)
        size = len(combinations)

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": self.name, **self.model_dump(), "number": size}
            settings["pictures"] = "drawn" if archive is None else "published"
            # Neighbours differ by a pixel or so: a longer search for what was there before halves the file.
            with DatasetWriter(path, size, settings, seed, command, compression=5) as writer:
                writer.add_image("image", (1, SIDE, SIDE), "bits")
                scales = [f"{scale:.1f}" for scale in SCALES]
                writer.add_attributes("attributes", {"shape": list(SHAPES), "scale": scales})
                for name, meaning in _FACTORS.items():
                    writer.add_factor(name, "uint8", "", meaning)
                done = 0
                for places, pictures in self._make_pictures(archive, combinations, workers, chunk):
                    codes = np.stack(np.unravel_index(places, _SIZES), axis=1).astype(np.uint8)
                    factors: dict[str, NDArray[Any]] = dict(zip(_FACTORS, codes.T, strict=True))
                    writer.write(done, {"image": pictures, "attributes": codes[:, :2]}, factors)
                    done += len(places)
                    yield Progress(done)
                # Both ends of the orientations are one picture, which no two parts may share.
                same = np.stack(np.unravel_index(combinations, _SIZES))
                same[2] %= ORIENTATIONS - 1
                groups = np.ravel_multi_index(tuple(same), _SIZES)
                parts = split_by_group(groups, _WHOLE, seed, "iid")
                writer.add_splits("iid", **parts, meaning="85/5/10 % of the different pictures")
            return path

        return Work(f"making {self.name}", size, "image", write_dataset, comparison_notes(content))

    def _select_combinations(self, seed: int) -> NDArray[np.int64]:
        """Select the combinations for the dataset, ascending, the row changing fastest and the shape slowest."""
        combinations = np.arange(_WHOLE)
        combinations = combinations[(combinations // POSITIONS) % ORIENTATIONS < self.orientations]
        if self.number is None or self.number >= len(combinations):
            return combinations
        return np.sort(combinations[random_order(seed, self.name, len(combinations))[: self.number]])

    def _make_pictures(
        self, archive: SpriteArchive | None, combinations: NDArray[np.int64], workers: Workers, chunk: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
        """Yield numbers of combinations [n] with their packed pictures [n, 512], in order."""
        first = np.flatnonzero(np.diff(combinations // POSITIONS, prepend=-1))  # one sprite at all of its places
        groups = np.split(combinations, first[1:])
        if archive is not None:
            for places, pictures in zip(
                groups, archive.read_pictures([group[0] // POSITIONS for group in groups]), strict=True
            ):
                yield places, pictures[places % POSITIONS]
            return
        several = max(1, chunk // POSITIONS)
        calls = ((groups[start : start + several],) for start in range(0, len(groups), several))
        for places, pictures in map_in_order(_render_groups, calls, workers):
            yield places, pictures


def _render_groups(groups: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Render groups of combinations of one sprite each; return their numbers and packed pictures."""
    pictures = []
    for group in groups:
        shape, scale, orientation = np.unravel_index(group[0] // POSITIONS, _SIZES[:3])
        drawn = render_sprites(int(shape), int(scale), int(orientation))
        pictures.append(drawn.reshape(POSITIONS, -1)[group % POSITIONS])
    return np.concatenate(groups), np.concatenate(pictures)
