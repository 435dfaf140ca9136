"""How the functions of the tracer are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["device"]

F = TypeVar("F", bound=Callable[..., Any])


def device(function: F) -> F:
    """A function that kernels call: compiled into them, and callable from Python too (for tests).

    Division by zero gives an infinity, as in numpy. No "fast" mathematics: every processor gives the same bits.
    """
    compiled: Any = numba.njit(error_model="numpy", forceinline=True, _nrt=False)(function)
    return cast(F, compiled)
