"""Compilation of the tracer's functions."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

from mmgen.core.elsewhere import outside_current_folder

with outside_current_folder():
    import numba
    from numba.core import config

config._config_fname = os.devnull  # it is looked for again whenever something is compiled

__all__ = ["OPTIONS", "compile_later", "device", "numba"]

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""Division by zero gives an infinity; and nothing allocates memory, so that no references need counting.

Not among them is "fast" mathematics: what a kernel computes does not depend on how the processor likes it best.
"""

compile_later: Any = numba.njit


def device(function: F) -> F:
    """Mark a function for compilation into the kernels; Python can still call it."""
    compiled: F = compile_later(function, forceinline=True, **OPTIONS)
    return compiled
