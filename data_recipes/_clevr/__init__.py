"""A small ray tracer for CLEVR's scenes: three bodies on a floor under three lamps and a sun.

It is 300 times faster than CLEVR's own renderer and differs from it by half a percent. Read
``_kernel.py`` first: it follows a ray from the camera to the light; each of the other files is one thing that it needs.

Importing this package is cheap: numba is loaded by the first call that needs it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.core.progress import Work

__all__ = ["compile_kernels", "masks", "render", "visible_pixels"]

SceneArrays = dict[str, NDArray[Any]]


def render(scenes: SceneArrays, size: int, samples: int = 64) -> NDArray[np.uint8]:
    """Render pictures of n scenes on one thread; a pure function of its arguments.

    Returns:
        uint8 [n, 3, size, size].
    """
    from mmgen.data_recipes._clevr._api import render

    return render(scenes, size, samples)


def visible_pixels(scenes: SceneArrays, size: int = 112) -> NDArray[np.int64]:
    """Count the pixels that show each object, int64 [n, objects]; a pixel shows the object behind its middle."""
    from mmgen.data_recipes._clevr._api import visible_pixels

    return visible_pixels(scenes, size)


def masks(scenes: SceneArrays, size: int) -> NDArray[np.uint8]:
    """Return the object behind each pixel, uint8 [n, size, size]: 0 for the floor, i + 1 for object i."""
    from mmgen.data_recipes._clevr._api import masks

    return masks(scenes, size)


def compile_kernels() -> Work[None] | None:
    """Return the compilation that has to run before the first call; None if the user's cache holds the kernels.

    Without it, the first call compiles; do it before starting workers, or each of them will.
    """
    from mmgen.data_recipes._clevr._api import compile_kernels

    return compile_kernels()
