"""Visible bodies by pixel: one ray through the middle of each pixel."""

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._clevr._bodies import CUBE, SHAPE, SIZE, X, Y, nearest_body
from mmgen.data_recipes._clevr._camera import camera_axes, primary_ray, project_point
from mmgen.data_recipes._clevr._jit import device
from mmgen.data_recipes._clevr._vectors import Vector

__all__ = ["mark_bodies"]

Floats = NDArray[np.float64]


@device
def _screen_box(bodies: Floats, i: int, position: Vector, axes: Any, size: int) -> tuple[int, int, int, int]:
    """Return rows and columns (first, end, first, end) outside which no pixel shows the body."""
    half = bodies[i, SIZE]
    # Half width of an upright box with any rotation about the vertical.
    wide = half * sqrt(2.0) if bodies[i, SHAPE] == CUBE else half
    top, bottom, left, right = 1e9, -1e9, 1e9, -1e9
    for corner in range(8):
        p = (
            bodies[i, X] + (wide if corner & 1 else -wide),
            bodies[i, Y] + (wide if corner & 2 else -wide),
            half + (half if corner & 4 else -half),
        )
        x, y, depth = project_point(position, axes, p, size)
        if depth < 1e-3:
            return 0, size, 0, size  # the body reaches beside or behind the camera
        top, bottom, left, right = min(top, y), max(bottom, y), min(left, x), max(right, x)
    return (
        max(int(top), 0),
        max(min(int(bottom) + 1, size), 0),
        max(int(left), 0),
        max(min(int(right) + 1, size), 0),
    )


def mark_bodies(bodies: Floats, cameras: Floats, size: int, counts: NDArray[Any], masks: NDArray[Any]) -> None:
    """Count the pixels that show each body into ``counts`` [n, objects]; set ``masks`` [n, S, S] to i + 1 at body i.

    One ray is cast per pixel of each body's screen box. ``masks`` of shape [0, 0, 0] are not filled.
    """
    for scene in range(len(bodies)):
        position = (cameras[scene, 0], cameras[scene, 1], cameras[scene, 2])
        axes = camera_axes(position)
        for i in range(bodies.shape[1]):
            top, bottom, left, right = _screen_box(bodies[scene], i, position, axes, size)
            for row in range(top, bottom):
                for column in range(left, right):
                    w = primary_ray(axes, column + 0.5, row + 0.5, size)
                    if nearest_body(bodies[scene], position, w, -1)[1] == i:
                        counts[scene, i] += 1
                        if len(masks):
                            masks[scene, row, column] = i + 1
