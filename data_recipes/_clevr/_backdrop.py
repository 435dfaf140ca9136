"""The grey floor, which rises behind the scene in a quarter cylinder to a wall; everything else is black.

CLEVR publishes its floor as a mesh. The numbers here describe it by a cylinder; they, and the light that its parts send
to each other, are fitted to the empty parts of eight pictures that Blender rendered with that mesh. (Start and radius
of the cylinder can be traded against each other; the wall is where the mesh has it, 16 behind the origin.)
"""

from math import sqrt

import numpy as np

from mmgen.data_recipes._clevr._bodies import NOTHING
from mmgen.data_recipes._clevr._jit import device
from mmgen.data_recipes._clevr._vectors import Vector

__all__ = [
    "BACK",
    "HALF_WIDTH",
    "RADIUS",
    "START",
    "ALBEDO",
    "ambient_radiance",
    "backdrop_normal",
    "backdrop_distance",
]

ALBEDO = 0.8

BACK = (-0.9235, 0.3836)
"""Horizontal direction in which the floor rises, a unit vector."""

START = 8.0
"""Where it begins to, from the origin."""

RADIUS = 8.0
"""Radius of the quarter cylinder, which ends in the wall."""

HALF_WIDTH = 22.0
"""Extent of floor and wall to either side of the origin; mirrored in metal, their ends can be seen."""

_AMBIENT = np.array([0.0055, 0.0067, 0.0092, 0.0130, 0.0209, 0.0231, 0.0164, 0.0187])
"""Radiance that the backdrop sends back of light which came over its other parts, every 4 units from 12 before the
origin to 16 behind. It is brightest where the floor begins to face the wall."""

_AMBIENT_START, _AMBIENT_STEP = -12.0, 4.0


@device
def backdrop_distance(p: Vector, w: Vector) -> float:
    """Return the distance from p along the ray w to the backdrop; NOTHING if it misses."""
    r, dr = p[0] * BACK[0] + p[1] * BACK[1] - START, w[0] * BACK[0] + w[1] * BACK[1]
    h, dh = p[2] - RADIUS, w[2]
    t = NOTHING
    if dh < 0.0 and r - p[2] / dh * dr <= 0.0:
        t = -p[2] / dh  # the floor
    else:
        # In the plane across the cylinder: (r + t dr)^2 + (h + t dh)^2 = radius^2, the farther solution.
        a, b, c = dr * dr + dh * dh, r * dr + h * dh, r * r + h * h - RADIUS * RADIUS
        discriminant = b * b - a * c
        if discriminant > 0.0:
            round_t = (-b + sqrt(discriminant)) / a
            if r + round_t * dr >= 0.0 and h + round_t * dh <= 0.0:
                t = round_t
        if t == NOTHING and dr > 0.0 and h + (RADIUS - r) / dr * dh > 0.0:
            t = (RADIUS - r) / dr  # the wall
    aside = (p[0] + t * w[0]) * BACK[1] - (p[1] + t * w[1]) * BACK[0]
    return t if abs(aside) < HALF_WIDTH else NOTHING


@device
def backdrop_normal(p: Vector) -> Vector:
    """Return the unit normal at a point of the backdrop."""
    r = p[0] * BACK[0] + p[1] * BACK[1] - START
    if r <= 0.0:
        return 0.0, 0.0, 1.0
    h = p[2] - RADIUS
    if h >= 0.0:
        return -BACK[0], -BACK[1], 0.0
    length = sqrt(r * r + h * h)
    return -r * BACK[0] / length, -r * BACK[1] / length, -h / length


@device
def ambient_radiance(p: Vector) -> float:
    """Return the radiance at a point p of the backdrop that comes from light of the other parts of the backdrop."""
    place = (p[0] * BACK[0] + p[1] * BACK[1] - _AMBIENT_START) / _AMBIENT_STEP
    place = min(max(place, 0.0), len(_AMBIENT) - 1.001)
    cell = int(place)
    return _AMBIENT[cell] + (place - cell) * (_AMBIENT[cell + 1] - _AMBIENT[cell])
