"""Camera: rays through pixels, and projection of points into the image."""

from math import pi, tan

from mmgen.data_recipes._clevr._jit import device
from mmgen.data_recipes._clevr._vectors import Axes, Vector, cross, dot, normalise, scale, subtract

__all__ = ["FIELD_OF_VIEW", "FILTER_WIDTH", "camera_axes", "primary_ray", "project_point"]

FIELD_OF_VIEW = 49.134
"""Degrees, of the whole (square) image."""

FILTER_WIDTH = 3.0
"""Pixels across the whole Blackman-Harris window that pixels are filtered with."""

_HALF = tan(FIELD_OF_VIEW / 2.0 * pi / 180.0)


@device
def camera_axes(position: Vector) -> Axes:
    """Return unit vectors right, up and forward of an upright camera that looks at the origin from a side."""
    forward = normalise(scale(position, -1.0))
    right = normalise(cross(forward, (0.0, 0.0, 1.0)))
    return right, cross(right, forward), forward


@device
def primary_ray(axes: Axes, x: float, y: float, size: int) -> Vector:
    """Return the unit direction through the point (x, y) of the image, in pixels from its upper left corner."""
    right, up, forward = axes
    a = (2.0 * x / size - 1.0) * _HALF
    b = (1.0 - 2.0 * y / size) * _HALF
    return normalise(
        (
            forward[0] + a * right[0] + b * up[0],
            forward[1] + a * right[1] + b * up[1],
            forward[2] + a * right[2] + b * up[2],
        )
    )


@device
def project_point(position: Vector, axes: Axes, p: Vector, size: int) -> tuple[float, float, float]:
    """Return the image coordinates of a point in pixels, and its depth (positive in front of the camera)."""
    right, up, forward = axes
    v = subtract(p, position)
    depth = dot(v, forward)
    x = dot(v, right) / (depth * _HALF)
    y = dot(v, up) / (depth * _HALF)
    return (x + 1.0) * 0.5 * size, (1.0 - y) * 0.5 * size, depth
