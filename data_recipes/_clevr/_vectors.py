"""Parts of the compiled kernels: vectors, random points that are spread evenly, and compilation.

Sample points: a keyed hash and low-discrepancy sequences, without state.

Sample number ``s`` of a pixel asks for points of the unit square, one for each purpose (place in the pixel, place on a
lamp, ...), by the number of the purpose. The points of one purpose are consecutive points of the R2 sequence, shifted
around the square by a hash of (image, pixel, purpose). The order in which a pixel visits them is shuffled for each
purpose, or the place on a lamp would be a function of the place in the pixel.

References:
    The Unreasonable Effectiveness of Quasirandom Sequences (Roberts, 2018),
    https://extremelearning.com.au/unreasonable-effectiveness-of-quasirandom-sequences/
"""

import os
from collections.abc import Callable
from math import pi, sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmgen.core.extras import outside_current_folder

with outside_current_folder():
    import numba
    from numba.core import config

config._config_fname = os.devnull  # it is looked for again whenever something is compiled


F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""Division by zero gives an infinity; and nothing allocates memory, so that no references need counting.

Not among them is "fast" mathematics: what a kernel computes does not depend on how the processor likes it best.
"""

compile_later: Any = numba.njit


def device(function: F) -> F:
    """Mark a function for compilation into the kernels; Python can still call it."""
    compiled: F = compile_later(function, forceinline=True, **OPTIONS)
    return compiled


Vector = tuple[float, float, float]

Axes = tuple[Vector, Vector, Vector]
"""An orthonormal frame; the third is a surface's normal, or the direction in which something looks."""


@device
def add(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@device
def subtract(a: Vector, b: Vector) -> Vector:
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@device
def multiply(a: Vector, b: Vector) -> Vector:
    """Return products of the components: light that a surface of colour ``a`` returns of light ``b``."""
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


@device
def scale(a: Vector, s: float) -> Vector:
    """Return s a."""
    return a[0] * s, a[1] * s, a[2] * s


@device
def point_on_ray(origin: Vector, t: float, direction: Vector) -> Vector:
    """Return the origin + t direction."""
    return origin[0] + t * direction[0], origin[1] + t * direction[1], origin[2] + t * direction[2]


@device
def dot(a: Vector, b: Vector) -> float:
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@device
def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@device
def normalise(a: Vector) -> Vector:
    """Return a / |a|."""
    return scale(a, 1.0 / sqrt(dot(a, a)))


@device
def orthonormal_frame(n: Vector) -> Axes:
    """Return two unit vectors that complete the unit vector ``n`` to an orthonormal frame, and ``n``.

    The construction has to change somewhere on the sphere. It does so close to the bottom, which nothing here shows: a
    change at n_z = 0 is seen as a dotted line round every object.

    References:
        Building an Orthonormal Basis from a 3D Unit Vector Without Normalization (Frisvad, 2012), Journal of Graphics
        Tools 16(3), https://doi.org/10.1080/2165347X.2012.689606
    """
    x, y, z = n
    if z > -0.9:
        a = 1.0 / (1.0 + z)
        b = -x * y * a
        return (1.0 - x * x * a, b, -x), (b, 1.0 - y * y * a, -y), n
    a = 1.0 / (1.0 - z)
    b = x * y * a
    return (1.0 - x * x * a, -b, x), (-b, 1.0 - y * y * a, y), n


@device
def to_frame(w: Vector, axes: Axes) -> Vector:
    """Return coordinates of w along the axes of a frame."""
    return dot(w, axes[0]), dot(w, axes[1]), dot(w, axes[2])


@device
def from_frame(local: Vector, axes: Axes) -> Vector:
    """Return the vector whose coordinates along the axes of a frame are ``local``."""
    return point_on_ray(point_on_ray(scale(axes[0], local[0]), local[1], axes[1]), local[2], axes[2])


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
