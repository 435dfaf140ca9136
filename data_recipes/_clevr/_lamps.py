"""The lights: three square lamps and the sun.

A lamp is a row of an array: where it is, its two sides as vectors, the direction in which it shines, and its intensity
(columns below). Lamps are one-sided and aim at the origin; what is seen of them is their light and its reflection.
"""

from math import pi, sqrt, tan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._clevr._jit import device
from mmgen.data_recipes._clevr._sampling import disc_point
from mmgen.data_recipes._clevr._vectors import Vector, dot, orthonormal_frame, point_on_ray, scale, subtract

__all__ = [
    "LAMPS",
    "LAMP_COLUMNS",
    "SUN_ANGLE",
    "SUN_DIRECTION",
    "SUN_STRENGTH",
    "lamp_rows",
    "sample_light",
    "visible_light",
]

LAMP_COLUMNS = 15
_PLACE, _SIDE_A, _SIDE_B, _AIM, _INTENSITY = range(0, LAMP_COLUMNS, 3)  # three columns each

LAMPS = (
    ("key", 0.5, 78.54, (1.0, 0.9323, 0.8167)),
    ("fill", 0.5, 23.56, (0.7617, 0.8177, 1.0)),
    ("back", 1.0, 39.27, (1.0, 1.0, 1.0)),
)
"""Name, side, power in watts and colour. A square lamp of power W has radiance W / (pi side^2)."""


def _normalise(v: Vector) -> Vector:
    length = sqrt(v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
    return v[0] / length, v[1] / length, v[2] / length


SUN_DIRECTION = _normalise((0.4145, -0.1946, 0.8890))
"""Towards the sun, which shines on all scenes alike."""

SUN_STRENGTH = 0.45
"""Irradiance of a surface that faces it."""

SUN_ANGLE = 0.1993
"""Its diameter, radians."""

_SUN_RADIUS = tan(SUN_ANGLE / 2.0)  # of its disc at distance 1
_SUN_RADIANCE = SUN_STRENGTH / (pi * _SUN_RADIUS**2)
_SUN_AXES = orthonormal_frame(SUN_DIRECTION)


def lamp_rows(positions: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return lamps [n, 3, LAMP_COLUMNS] of n scenes from their positions [n, 3] by name."""

    def normalise(v: NDArray[np.float64]) -> NDArray[np.float64]:
        x, y, z = v[..., 0], v[..., 1], v[..., 2]
        return v / np.sqrt(x * x + y * y + z * z)[..., None]

    rows = []
    for name, side, watts, colour in LAMPS:
        place = np.asarray(positions[name], np.float64)
        aim = normalise(-place)
        a = normalise(np.cross([0.0, 0.0, 1.0], aim))
        intensity = np.broadcast_to(np.array(colour) * watts / np.pi, place.shape)
        rows.append(np.concatenate([place, side * a, side * np.cross(aim, a), aim, intensity], axis=-1))
    return np.stack(rows, axis=-2)


@device
def _lamp_vector(lamps: NDArray[np.float64], k: int, column: int) -> Vector:
    return lamps[k, column], lamps[k, column + 1], lamps[k, column + 2]


@device
def sample_light(lamps: NDArray[np.float64], k: int, p: Vector, u: float, v: float) -> tuple[Vector, Vector]:
    """Return direction and irradiance of the light that reaches p from the point (u, v) of lamp k, or of the sun."""
    if k == len(lamps):
        x, y = disc_point(u, v)
        w = point_on_ray(point_on_ray(SUN_DIRECTION, x * _SUN_RADIUS, _SUN_AXES[0]), y * _SUN_RADIUS, _SUN_AXES[1])
        shrink = 1.0 / sqrt(1.0 + (x * x + y * y) * (_SUN_RADIUS * _SUN_RADIUS))
        return scale(w, shrink), (SUN_STRENGTH, SUN_STRENGTH, SUN_STRENGTH)
    place = _lamp_vector(lamps, k, _PLACE)
    place = point_on_ray(
        point_on_ray(place, u - 0.5, _lamp_vector(lamps, k, _SIDE_A)), v - 0.5, _lamp_vector(lamps, k, _SIDE_B)
    )
    w = subtract(place, p)
    nearness = 1.0 / sqrt(dot(w, w))
    w = scale(w, nearness)
    falling = max(0.0, -dot(w, _lamp_vector(lamps, k, _AIM)))
    return w, scale(_lamp_vector(lamps, k, _INTENSITY), falling * nearness * nearness)


@device
def visible_light(lamps: NDArray[np.float64], p: Vector, w: Vector) -> Vector:
    """Return the radiance of all lights that the unobstructed ray from p in the unit direction w meets."""
    total = (0.0, 0.0, 0.0)
    for k in range(len(lamps)):
        aim = _lamp_vector(lamps, k, _AIM)
        to_lamp = subtract(_lamp_vector(lamps, k, _PLACE), p)
        falling, ahead = -dot(w, aim), -dot(to_lamp, aim)
        if falling > 0.0 and ahead > 0.0:
            # The ray meets the lamp's plane at w ahead / falling; q is "falling" times what lies between there and
            # the lamp's middle.
            q = subtract(scale(w, ahead), scale(to_lamp, falling))
            a, b = _lamp_vector(lamps, k, _SIDE_A), _lamp_vector(lamps, k, _SIDE_B)
            area = dot(a, a)
            if max(abs(dot(q, a)), abs(dot(q, b))) < 0.5 * area * falling:
                total = point_on_ray(total, 1.0 / area, _lamp_vector(lamps, k, _INTENSITY))
    c = dot(w, SUN_DIRECTION)
    if c > 0.0 and 1.0 - c * c < (_SUN_RADIUS * c) ** 2:  # tan(angle) < radius
        total = point_on_ray(total, _SUN_RADIANCE, (1.0, 1.0, 1.0))
    return total
