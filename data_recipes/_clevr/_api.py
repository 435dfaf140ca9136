"""Pictures, masks and counts of pixels of scenes, by kernels that are compiled once and kept in the user's cache."""

import hashlib
import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from math import cos, sin
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding
from numpy.typing import NDArray

from mmgen.core.errors import UsageError
from mmgen.core.progress import Progress, Work
from mmgen.core.surroundings import cache_folder
from mmgen.data_recipes._clevr import _kernel
from mmgen.data_recipes._clevr._bodies import BLUE, COLUMNS, COS, FILTER_WIDTH, METAL, RED, SHAPE, SIN, SIZE, X, Y
from mmgen.data_recipes._clevr._lamps import lamp_rows
from mmgen.data_recipes._clevr._vectors import OPTIONS, PURPOSES, compile_later, filter_table, numba

Kernel = Callable[..., None]


@cache
def kernel_folder() -> Path | None:
    """Return the folder of compiled kernels; None if it cannot be written, so that every process compiles."""
    # numba looks at the time stamp of one source file only, so the folder's name holds a hash of all of them (and of
    # what else decides the machine code): code of another version of mmgen is never found.
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    for part in (numba.__version__, sys.version, binding.get_host_cpu_name()):
        digest.update(part.encode())
    numba_cache = os.environ.get("NUMBA_CACHE_DIR")
    try:
        folder = (Path(numba_cache) / "mmgen" if numba_cache else cache_folder("kernels")) / digest.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, UsageError):
        return None
    return folder if os.access(folder, os.W_OK) else None


def is_cached() -> bool:
    """Return whether the kernels need not be compiled."""
    folder = kernel_folder()
    return folder is not None and len(list(folder.rglob("*.nbc"))) >= len(_SOURCES)


@contextmanager
def _cache_kernels_in(folder: Path) -> Iterator[None]:
    """Keep the code of functions that are compiled in this block in ``folder``."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


_SOURCES = (_kernel.render_scene, _kernel.mark_bodies)


@cache
def load_kernels() -> tuple[Kernel, Kernel]:
    """Return ``render_scene`` and ``mark_bodies``, each compiled or loaded from the cache at its first call."""
    folder = kernel_folder()
    if folder is None:
        return compile_later(_SOURCES[0], **OPTIONS), compile_later(_SOURCES[1], **OPTIONS)
    with _cache_kernels_in(folder):
        return compile_later(_SOURCES[0], cache=True, **OPTIONS), compile_later(_SOURCES[1], cache=True, **OPTIONS)


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
