from ._api import (
    SceneArrays as SceneArrays,
    compile_kernels as compile_kernels,
    object_masks as object_masks,
    render as render,
    visible_pixels as visible_pixels,
)
