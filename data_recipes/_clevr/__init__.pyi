from ._api import (
    SceneArrays as SceneArrays,
    compile_kernels as compile_kernels,
    masks as masks,
    render as render,
    visible_pixels as visible_pixels,
)
