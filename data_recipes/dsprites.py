"""dSprites: squares, ellipses and hearts of every size, angle and place, to see which factors a model finds.

References:
    dSprites: Disentanglement testing sprites dataset (Matthey, Higgins, Hassabis, Lerchner, 2017)
    beta-VAE: Learning Basic Visual Concepts with a Constrained Variational Framework (Higgins et al., 2017)
"""

import io
import math
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError, iterate_member, open_zip
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, map_in_order, write_rows
from mmgen.data_recipes._published import (
    SourceComparison,
    comparison_notes,
    file_md5,
    published_source,
    read_npy_header,
    unverified_source,
)
from mmgen.data_recipes._streams import random_order, split_by_group

__all__ = ["Dsprites"]

SIDE = 64
"""Height and width of a picture, pixels."""
SHAPES = ("square", "ellipse", "heart")
SCALES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
ORIENTATIONS = 40
"""Angles 2 pi i / 39: both ends are the same angle."""
COLUMNS = ROWS = 32
POSITIONS = COLUMNS * ROWS
"""Places of one sprite; the row (y) changes fastest."""

_HALF_SIDE = 9.6
"""Half the side of the square at scale 1, pixels."""
_SEMI_AXES = 12.8, 7.2
"""Semi-axes of the ellipse at scale 1, across and down, pixels."""
_HEART_CENTRE = 1.0
"""How far below the sprite's centre the heart is measured from, at scale 1, pixels."""
_HEART_RADII = np.array([
    8.16, 6.55, 5.73, 5.36, 5.19, 5.21, 5.41, 5.79, 6.43, 7.37, 8.6, 10.03, 11.14, 11.84, 12.05, 11.86, 11.02, 9.34,
    6.68,
])  # fmt: skip
"""The heart at scale 1, a polygon with an axis of symmetry: distances of its corners, pixels, every 10 degrees from
straight down to straight up. They were fitted to 192 published pictures of hearts, pixel by pixel."""
_WINDOW = 30
"""Pixels around a sprite that can be covered: the farthest corner of the square is 13.6 pixels from its centre."""


_PUBLISHED = "the published dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
_MEMBER = "imgs.npy"
_PICTURES = len(SHAPES) * len(SCALES) * ORIENTATIONS * POSITIONS
_HEAD = 2**16
"""Bytes that the header of an array may take."""


def render_sprites(shape: int, scale: int, orientation: int) -> NDArray[np.uint8]:
    """Render a sprite at all places: packed pictures uint8 [1024, 64, 8], the row changing fastest.

    Args:
        shape: Index into ``SHAPES``.
        scale: Index into ``SCALES``.
        orientation: Index of the angle.
    """
    # A pixel is on where its centre is inside of the shape: nothing is antialiased, as published.
    left, across = _window_pixels(COLUMNS)
    top, down = _window_pixels(ROWS)
    angle = 2 * math.pi * orientation / (ORIENTATIONS - 1)
    # [column, row, pixel row, pixel column], as float32: more digits decide no pixel of the published pictures.
    x, y = across[:, None, None, :], down[None, :, :, None]
    u = np.asarray((math.cos(angle) * x - math.sin(angle) * y) / SCALES[scale], np.float32)
    v = np.asarray((math.sin(angle) * x + math.cos(angle) * y) / SCALES[scale], np.float32)
    covered = _INSIDE[shape](u, v)
    pictures = np.zeros((COLUMNS, ROWS, SIDE, SIDE), bool)
    for column, start in enumerate(left):
        for row, first in enumerate(top):
            pictures[column, row, first : first + _WINDOW, start : start + _WINDOW] = covered[column, row]
    return np.packbits(pictures.reshape(POSITIONS, SIDE, SIDE), axis=-1)


def _window_pixels(places: int) -> tuple[Sequence[int], NDArray[np.float32]]:
    """Return the first pixel of the window around each place, and its pixels' distances from the centre."""
    centres = 16 + 32 * np.arange(places) / (places - 1)
    first = np.round(centres).astype(int) - _WINDOW // 2
    distances = first[:, None] + np.arange(_WINDOW) + 0.5 - centres[:, None]
    return first.tolist(), distances.astype(np.float32)


def _is_in_square(u: NDArray[np.float32], v: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.asarray(np.maximum(np.abs(u), np.abs(v)) < _HALF_SIDE)


def _is_in_ellipse(u: NDArray[np.float32], v: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.asarray(np.square(u / _SEMI_AXES[0]) + np.square(v / _SEMI_AXES[1]) < 1)


def _is_in_heart(u: NDArray[np.float32], v: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return whether points lie nearer to the heart's middle than the edge of the polygon in their direction."""
    x, y = np.abs(u), v - np.float32(_HEART_CENTRE)
    step = math.pi / (len(_HEART_RADII) - 1)
    sector = np.minimum((np.arctan2(x, y) / step).astype(np.int64), len(_HEART_RADII) - 2)
    angles = step * np.arange(len(_HEART_RADII))
    corners = np.stack([_HEART_RADII * np.sin(angles), _HEART_RADII * np.cos(angles)], axis=-1).astype(np.float32)
    edges = np.diff(corners, axis=0)
    # The edge from a to b has the middle on its left or right alike: compare with the side that the middle lies on.
    offset = corners[:-1, 0] * edges[:, 1] - corners[:-1, 1] * edges[:, 0]
    return np.asarray((offset[sector] - (x * edges[sector, 1] - y * edges[sector, 0])) * np.sign(offset[sector]) > 0)


_INSIDE = _is_in_square, _is_in_ellipse, _is_in_heart


def is_inside(shape: str, u: NDArray[np.float32], v: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return whether points, in pixels from the middle of a sprite of scale 1, lie in it; v points downwards."""
    inside: NDArray[np.bool_] = _INSIDE[SHAPES.index(shape)](u, v)
    return inside


_MD5 = "7da33b31b13a06f4b04a70402ce90c2e"


class SpriteArchive:
    """Reader of the published archive, which reads its pictures alone, in bounded memory.

    Args:
        path: The ``.npz``.

    Raises:
        DataError: It cannot be read, or does not hold 737,280 pictures of 64 x 64.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open_zip(path) as archive:
                member = archive.getinfo(_MEMBER)
                head = next(iterate_member(archive, member, _HEAD), b"")
            self._start, shape = _parse_header(head)
            if shape != (_PICTURES, SIDE, SIDE) or member.file_size != self._start + _PICTURES * SIDE**2:
                raise ValueError(f"its {_MEMBER} has shape {shape}")
        except KeyError:
            raise DataError(f"{path} has no {_MEMBER}; give {_PUBLISHED}") from None
        except (CannotReadError, ValueError, OverflowError) as error:
            raise DataError(f"cannot read {path} as dSprites: {error}; give {_PUBLISHED}") from None

    def content(self) -> SourceComparison:
        """Compare the archive with the published file by its hash."""
        if file_md5(self.path) == _MD5:
            return published_source("dSprites", self.path)
        return unverified_source("dSprites", self.path, "another file than the published one, of as many pictures")

    def read_pictures(self, sprite_numbers: Sequence[int]) -> Iterator[NDArray[np.uint8]]:
        """Yield, for each of the sprites, its pictures at all places, packed uint8 [1024, 512]."""
        numbers, size = set(sprite_numbers), POSITIONS * SIDE**2
        try:
            with open_zip(self.path) as archive:
                pending, number = bytearray(), 0
                # The whole member is read, since its checksum is at the end.
                for piece in iterate_member(archive, archive.getinfo(_MEMBER), size):
                    pending += piece
                    skipped = 0 if number else self._start
                    while len(pending) >= skipped + size:
                        if number in numbers:
                            pixels = np.frombuffer(bytes(pending[skipped : skipped + size]), np.uint8)
                            if pixels.max() > 1:
                                raise CannotReadError(f"a pixel is {pixels.max()}, expected 0 or 1")
                            yield np.packbits(pixels.reshape(POSITIONS, -1), axis=1)
                        del pending[: skipped + size]
                        number, skipped = number + 1, 0
        except (CannotReadError, KeyError) as error:
            raise DataError(f"cannot read {self.path} as dSprites: {error}; give {_PUBLISHED}") from None


def _parse_header(head: bytes) -> tuple[int, tuple[int, ...]]:
    """Return the offset and shape of the numbers in an ``.npy`` file."""
    source = io.BytesIO(head)
    shape, fortran, dtype = read_npy_header(source)
    if fortran or dtype != np.uint8:
        raise ValueError(f"it holds an array of {dtype}{' in Fortran order' if fortran else ''}, expected uint8")
    return source.tell(), shape


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
                made = self._make_pictures(archive, combinations, workers, chunk)
                yield from write_rows(writer, (_rows_of(places, pictures) for places, pictures in made))
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


def _rows_of(places: NDArray[np.int64], pictures: NDArray[np.uint8]) -> Rows:
    """Return the rows of combinations [n] with their packed pictures."""
    codes = np.stack(np.unravel_index(places, _SIZES), axis=1).astype(np.uint8)
    factors: dict[str, NDArray[Any]] = dict(zip(_FACTORS, codes.T, strict=True))
    return Rows({"image": pictures, "attributes": codes[:, :2]}, factors)


def _render_groups(groups: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Render groups of combinations of one sprite each; return their numbers and packed pictures."""
    pictures = []
    for group in groups:
        shape, scale, orientation = np.unravel_index(group[0] // POSITIONS, _SIZES[:3])
        drawn = render_sprites(int(shape), int(scale), int(orientation))
        pictures.append(drawn.reshape(POSITIONS, -1)[group % POSITIONS])
    return np.concatenate(groups), np.concatenate(pictures)
