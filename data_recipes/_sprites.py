"""Pictures of dSprites, drawn from the geometry of square, ellipse and heart, or as published.

References:
    dSprites: Disentanglement testing sprites dataset (Matthey, Higgins, Hassabis, Lerchner, 2017)
"""

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError, iterate_member, open_zip
from mmgen.data_recipes._published import SourceComparison, file_md5, published_source, unverified_source

__all__ = [
    "COLUMNS",
    "ORIENTATIONS",
    "POSITIONS",
    "ROWS",
    "SCALES",
    "SHAPES",
    "SIDE",
    "SpriteArchive",
    "render_sprites",
]

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
_HEART_RADII = np.array(
    [
        8.16,
        6.55,
        5.73,
        5.36,
        5.19,
        5.21,
        5.41,
        5.79,
        6.43,
        7.37,
        8.6,
        10.03,
        11.14,
        11.84,
        12.05,
        11.86,
        11.02,
        9.34,
        6.68,
    ]
)
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
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(source)
    if version not in readers:
        raise ValueError(f"it holds an array of format {version}")
    shape, fortran, dtype = readers[version](source)
    if fortran or dtype != np.uint8:
        raise ValueError(f"it holds an array of {dtype}{' in Fortran order' if fortran else ''}, expected uint8")
    return source.tell(), shape
