"""Sample points: a keyed hash and low-discrepancy sequences, without state.

Sample number ``s`` of a pixel asks for points of the unit square, one for each purpose (place in the pixel, place on a
lamp, ...), by the number of the purpose. The points of one purpose are consecutive points of the R2 sequence, shifted
around the square by a hash of (image, pixel, purpose). The order in which a pixel visits them is shuffled for each
purpose, or the place on a lamp would be a function of the place in the pixel.

References:
    The Unreasonable Effectiveness of Quasirandom Sequences (Roberts, 2018),
    https://extremelearning.com.au/unreasonable-effectiveness-of-quasirandom-sequences/
"""

from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._clevr._jit import device
from mmgen.data_recipes._clevr._vectors import Vector

__all__ = [
    "Offsets",
    "PURPOSES",
    "circle_point",
    "cosine_direction",
    "disc_point",
    "filter_table",
    "hash64",
    "sample_point",
    "fill_pixel_offsets",
    "interpolate_table",
]

PURPOSES = 19
"""Points of the square that a sample may ask for."""

Offsets = NDArray[np.int64]
"""A pixel's offsets [PURPOSES, 3]: two shifts and 12 bits that shuffle. Shifts and points are multiples of 2^-32."""

# The inverses of the plastic number and of its square (x^3 = x + 1).
_WHOLE = 2**32 - 1
_STEP_U = round(0.7548776662466927 * 2**32)
_STEP_V = round(0.5698402909980532 * 2**32)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
_BITS_30, _BITS_27, _BITS_31 = np.uint64(30), np.uint64(27), np.uint64(31)
_BITS_26, _BITS_52, _LOW_26 = np.uint64(26), np.uint64(52), np.uint64(2**26 - 1)
_ONE = np.uint64(1)


@device
def hash64(key: Any, number: Any) -> Any:
    """Return 64 random bits (uint64) for a key and a number (both uint64): SplitMix64's output function."""
    # Every operand is a uint64: numba turns a mixture with signed integers into floats.
    state = key + (number + _ONE) * _GOLDEN
    state = (state ^ (state >> _BITS_30)) * _MULTIPLIER_1
    state = (state ^ (state >> _BITS_27)) * _MULTIPLIER_2
    return state ^ (state >> _BITS_31)


@device
def fill_pixel_offsets(key: Any, pixel: int, offsets: Offsets) -> None:
    """Fill ``offsets`` with random shifts for the sample points of a pixel."""
    base = hash64(key, np.uint64(pixel))
    for purpose in range(PURPOSES):
        random = hash64(base, np.uint64(purpose))
        offsets[purpose, 0] = np.int64(random & _LOW_26) << 6
        offsets[purpose, 1] = np.int64((random >> _BITS_26) & _LOW_26) << 6
        offsets[purpose, 2] = np.int64(random >> _BITS_52)


@device
def sample_point(sample: int, purpose: int, offsets: Offsets) -> tuple[float, float]:
    """Return the point (u, v) of the unit square for a sample and a purpose, such as the place on a lamp."""
    # Blocks of four stay together, for pixels of which four samples are enough; the 16 blocks of every 64 samples are
    # visited in the order ((odd a) block + b) xor c, and the four of a block in the order i xor d.
    order = offsets[purpose, 2]
    a, b, c, d = 2 * (order & 7) + 1, order >> 3, (order >> 7) & 7, order >> 10
    block = (((sample >> 2) * a + b) ^ c) & 15
    index = (sample & ~63) | (block << 2) | ((sample ^ d) & 3)
    u = (offsets[purpose, 0] + index * _STEP_U) & _WHOLE
    v = (offsets[purpose, 1] + index * _STEP_V) & _WHOLE
    return u * 2.0**-32, v * 2.0**-32


_CIRCLE = np.stack([np.cos(np.arange(1024) * (pi / 512)), np.sin(np.arange(1024) * (pi / 512))], axis=1)


@device
def circle_point(v: float) -> tuple[float, float]:
    """Return one of 1,024 points of the unit circle for v in [0, 1), faster than a cosine and a sine."""
    k = int(v * 1024.0)
    return _CIRCLE[k, 0], _CIRCLE[k, 1]


@device
def disc_point(u: float, v: float) -> tuple[float, float]:
    """Draw uniformly from the unit disc."""
    r = sqrt(u)
    x, y = circle_point(v)
    return r * x, r * y


@device
def cosine_direction(u: float, v: float) -> Vector:
    """Return a direction about z with density cos(theta) / pi."""
    x, y = disc_point(u, v)
    return x, y, sqrt(max(0.0, 1.0 - x * x - y * y))


def filter_table(width: float, cells: int = 512) -> NDArray[np.float64]:
    """Return the inverse distribution function of the Blackman-Harris window of this full width, at the ends of equal
    cells.
    """
    x = np.linspace(-0.5, 0.5, 4097)
    density = np.zeros_like(x)
    for k, a in enumerate((0.35875, 0.48829, 0.14128, 0.01168)):
        density += a * np.cos(2.0 * np.pi * k * x)
    cumulative = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return width * np.interp(np.linspace(0.0, 1.0, cells + 1), cumulative / cumulative[-1], x)


@device
def interpolate_table(table: NDArray[np.float64], u: float) -> float:
    """Return the value at ``u`` in [0, 1) of the function that ``table`` holds at equal steps from 0 to 1."""
    place = u * (len(table) - 1)
    cell = int(place)
    return table[cell] + (place - cell) * (table[cell + 1] - table[cell])
