"""Scenes as arrays to the rows that the kernels read, and pictures back."""

from collections.abc import Generator
from functools import cache
from math import cos, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._clevr._bodies import BLUE, COLUMNS, COS, METAL, RED, SHAPE, SIN, SIZE, X, Y
from mmgen.data_recipes._clevr._camera import FILTER_WIDTH
from mmgen.data_recipes._clevr._compiled import is_cached, load_kernels
from mmgen.data_recipes._clevr._lamps import lamp_rows
from mmgen.data_recipes._clevr._sampling import PURPOSES, filter_table

__all__ = ["SceneArrays", "compile_kernels", "object_masks", "render", "visible_pixels"]

Floats = NDArray[np.float64]
SceneArrays = dict[str, NDArray[Any]]


@cache
def _pixel_filter() -> Floats:
    """Return the inverse distribution function of the pixel filter, as a table."""
    return filter_table(FILTER_WIDTH)


def body_rows(scenes: SceneArrays) -> Floats:
    """Return the objects of scenes as rows of numbers for the kernels, [n, objects, COLUMNS]."""
    rows = np.empty((*scenes["x"].shape, COLUMNS))
    rows[..., X], rows[..., Y], rows[..., SIZE] = scenes["x"], scenes["y"], scenes["size"]
    # numpy's vectorised functions may round differently in a chunk's last rows, these do not.
    turns = np.ravel(scenes["rotation"]).tolist()
    rows[..., COS] = np.reshape([cos(turn) for turn in turns], scenes["x"].shape)
    rows[..., SIN] = np.reshape([sin(turn) for turn in turns], scenes["x"].shape)
    rows[..., SHAPE], rows[..., METAL] = scenes["shape"], scenes["metal"]
    rows[..., RED : BLUE + 1] = scenes["colour"]
    return rows


def _camera_positions(scenes: SceneArrays) -> Floats:
    return np.ascontiguousarray(scenes["camera"], np.float64)


def render(scenes: SceneArrays, size: int, samples: int = 64) -> NDArray[np.uint8]:
    """Render pictures of n scenes on one thread, uint8 [n, 3, size, size]; a pure function of its arguments."""
    render_scene, _ = load_kernels()
    bodies, lamps, cameras = body_rows(scenes), lamp_rows(scenes), _camera_positions(scenes)
    offsets = np.empty((PURPOSES, 3), np.int64)
    images = np.empty((len(bodies), 3, size, size), np.uint8)
    for row, key in enumerate(scenes["seed"].astype(np.uint64)):
        render_scene(bodies[row], lamps[row], cameras[row], key, samples, _pixel_filter(), offsets, images[row])
    return images


def visible_pixels(scenes: SceneArrays, size: int = 112) -> NDArray[np.int64]:
    """Count the pixels that show each object, int64 [n, objects], by the object at the centre of each pixel."""
    bodies = body_rows(scenes)
    counts = np.zeros(bodies.shape[:2], np.int64)
    load_kernels()[1](bodies, _camera_positions(scenes), size, counts, np.empty((0, 0, 0), np.uint8))
    return counts


def object_masks(scenes: SceneArrays, size: int) -> NDArray[np.uint8]:
    """Return the object at each pixel's centre, uint8 [n, size, size]: 0 for the floor, i + 1 for object i."""
    bodies = body_rows(scenes)
    result = np.zeros((len(bodies), size, size), np.uint8)
    load_kernels()[1](bodies, _camera_positions(scenes), size, np.zeros(bodies.shape[:2], np.int64), result)
    return result


def _example_scene() -> SceneArrays:
    """Return arguments for the calls by which numba compiles the kernels."""
    zero = np.zeros((1, 1))
    place = np.array([[7.0, -6.0, 5.0]])
    return {
        "size": zero + 0.7, "colour": np.ones((1, 1, 3)), "metal": zero > 0, "shape": zero.astype(np.int64),
        "x": zero, "y": zero, "rotation": zero, "camera": place, "key": place, "fill": place, "back": place,
        "seed": np.zeros(1, np.uint64),
    }  # fmt: skip


def compile_kernels() -> Work[None] | None:
    """Return work that compiles the kernels; None if the user's cache holds them.

    Without it, the first call compiles; do it before starting workers, or each of them will.
    """
    if is_cached():
        return None

    def compile_both() -> Generator[Progress, None, None]:
        scene = _example_scene()
        visible_pixels(scene, 8)
        yield Progress(1)
        render(scene, 8, 1)
        yield Progress(2)

    return Work("compiling the renderer (once)", 2, "kernel", compile_both)
