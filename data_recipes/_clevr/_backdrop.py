"""The grey floor, which rises behind the scene in a quarter cylinder and goes on as a wall."""

from math import sqrt

from data_recipes._clevr._bodies import NOTHING
from data_recipes._clevr._jit import device
from data_recipes._clevr._vectors import Vector

__all__ = ["ALBEDO", "backdrop_normal", "meet_backdrop"]

ALBEDO = 0.8

_BACK = (-0.7544709, 0.6563334)
"""Horizontal direction in which the floor rises: away from the middle of the camera's places."""

_START = 4.0
"""Where it begins to, from the origin."""

_RADIUS = 12.0


@device
def meet_backdrop(p: Vector, w: Vector) -> float:
    """Distance along the ray from p, which is in front of the backdrop; NOTHING if it goes into the open sky."""
    r, dr = p[0] * _BACK[0] + p[1] * _BACK[1] - _START, w[0] * _BACK[0] + w[1] * _BACK[1]
    h, dh = p[2] - _RADIUS, w[2]
    if dh < 0.0:
        t = -p[2] / dh
        if r + t * dr <= 0.0:
            return t
    # In the plane across the cylinder: (r + t dr)^2 + (h + t dh)^2 = radius^2, the farther solution.
    a = dr * dr + dh * dh
    b = r * dr + h * dh
    c = r * r + h * h - _RADIUS * _RADIUS
    discriminant = b * b - a * c
    if discriminant > 0.0 and a > 0.0:
        t = (-b + sqrt(discriminant)) / a
        if t > 0.0 and r + t * dr >= 0.0 and h + t * dh <= 0.0:
            return t
    if dr > 0.0:
        t = (_RADIUS - r) / dr
        if h + t * dh > 0.0:
            return t
    return NOTHING


@device
def backdrop_normal(p: Vector) -> Vector:
    """Unit normal at a point of the backdrop."""
    r = p[0] * _BACK[0] + p[1] * _BACK[1] - _START
    if r <= 0.0:
        return 0.0, 0.0, 1.0
    h = p[2] - _RADIUS
    if h >= 0.0:
        return -_BACK[0], -_BACK[1], 0.0
    length = sqrt(r * r + h * h)
    return -r * _BACK[0] / length, -r * _BACK[1] / length, -h / length
