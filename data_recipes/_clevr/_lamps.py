"""Three square lamps and the sun.

A lamp is a row of an array: position, emitted radiance and side (columns below). Lamps are one-sided and aim at the
origin; they are seen only as light, by reflection.
"""

from math import pi, sqrt, tan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data_recipes._clevr._jit import device
from data_recipes._clevr._sampling import disc
from data_recipes._clevr._vectors import Vector, add, along, cross, dot, frame, from_frame, scale, sub, unit

__all__ = ["LAMP_COLUMNS", "SUN", "lamp_rows", "light_from_lamp", "light_from_sun", "seen_lamp", "seen_sun"]

LAMP_COLUMNS = 7  # x, y, z, red, green, blue, side

_LAMPS = (
    ("key", 0.5, 78.54, (1.0, 0.9323, 0.8167)),
    ("fill", 0.5, 23.56, (0.7617, 0.8177, 1.0)),
    ("back", 1.0, 39.27, (1.0, 1.0, 1.0)),
)
"""Name, side, power in watts and colour. A square lamp of power W has radiance W / (pi side^2)."""

SUN = (0.4145, -0.1946, 0.8890)
"""Direction to the sun."""

_SUN_LENGTH = sqrt(SUN[0] ** 2 + SUN[1] ** 2 + SUN[2] ** 2)
_SUN_DIRECTION = (SUN[0] / _SUN_LENGTH, SUN[1] / _SUN_LENGTH, SUN[2] / _SUN_LENGTH)
_SUN_STRENGTH = 0.45  # irradiance of a surface that faces it
_SUN_RADIUS = tan(0.1993 / 2.0)  # of its disc at distance 1
_SUN_RADIANCE = _SUN_STRENGTH / (pi * _SUN_RADIUS**2)
_SUN_AXES = frame(_SUN_DIRECTION)


def lamp_rows(positions: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Lamps [n, 3, LAMP_COLUMNS] of n scenes from their positions [n, 3] by name."""
    n = len(positions["key"])
    rows = np.empty((n, len(_LAMPS), LAMP_COLUMNS))
    for i, (name, side, watts, colour) in enumerate(_LAMPS):
        rows[:, i, :3] = positions[name]
        rows[:, i, 3:6] = np.array(colour) * watts / (np.pi * side**2)
        rows[:, i, 6] = side
    return rows


@device
def _axes(lamp: Any) -> tuple[Vector, Vector, Vector]:
    """Directions of a lamp's two sides and of its light."""
    n = unit((-lamp[0], -lamp[1], -lamp[2]))
    a = unit(cross((0.0, 0.0, 1.0), n))
    return a, cross(n, a), n


@device
def light_from_lamp(lamp: Any, p: Vector, u: float, v: float) -> tuple[Vector, Vector]:
    """Direction from p to the point (u, v) of a lamp, and the irradiance there of a surface that faces the lamp.

    The direction's length is the distance. Irradiance is 0 behind the lamp.
    """
    a, b, n = _axes(lamp)
    side = lamp[6]
    q = along(along((lamp[0], lamp[1], lamp[2]), (u - 0.5) * side, a), (v - 0.5) * side, b)
    w = sub(q, p)
    square = dot(w, w)
    strength = max(0.0, -dot(w, n)) * side * side / (square * sqrt(square))
    return w, scale((lamp[3], lamp[4], lamp[5]), strength)


@device
def light_from_sun(u: float, v: float) -> tuple[Vector, float]:
    """Direction (about 1 long) to a point of the sun, and the irradiance of a surface that faces it."""
    x, y = disc(u, v)
    offset = from_frame((x * _SUN_RADIUS, y * _SUN_RADIUS, 0.0), _SUN_AXES[0], _SUN_AXES[1], _SUN_DIRECTION)
    return add(_SUN_DIRECTION, offset), _SUN_STRENGTH


@device
def seen_lamp(lamp: Any, p: Vector, w: Vector) -> bool:
    """Whether a ray from p in direction w meets the shining side of a lamp."""
    a, b, n = _axes(lamp)
    falling = -dot(w, n)
    if falling <= 0.0:
        return False
    to_lamp = (lamp[0] - p[0], lamp[1] - p[1], lamp[2] - p[2])
    t = -dot(to_lamp, n) / falling
    q = sub(scale(w, t), to_lamp)
    return t > 0.0 and abs(dot(q, a)) < 0.5 * lamp[6] and abs(dot(q, b)) < 0.5 * lamp[6]


@device
def seen_sun(w: Vector) -> float:
    """Radiance that comes from the sun against the unit direction w."""
    c = dot(w, _SUN_DIRECTION)
    # Inside the disc: tan(angle) < radius.
    return _SUN_RADIANCE if c > 0.0 and 1.0 - c * c < (_SUN_RADIUS * c) ** 2 else 0.0
