"""The two kernels, compiled once per version of their source and kept in the user's cache."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import binding

from mmgen.data_recipes._clevr import _kernel, _visibility
from mmgen.data_recipes._clevr._jit import OPTIONS, compile_later, numba
from mmgen.data_recipes._download import cache_folder

__all__ = ["is_cached", "load_kernels", "kernel_folder"]

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
    folder = (Path(numba_cache) / "mmgen" if numba_cache else cache_folder("kernels")) / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
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


_SOURCES = (_kernel.render_scene, _visibility.mark_bodies)


@cache
def load_kernels() -> tuple[Kernel, Kernel]:
    """Return ``render_scene`` and ``mark_bodies``, each compiled or loaded from the cache at its first call."""
    folder = kernel_folder()
    if folder is None:
        return compile_later(_SOURCES[0], **OPTIONS), compile_later(_SOURCES[1], **OPTIONS)
    with _cache_kernels_in(folder):
        return compile_later(_SOURCES[0], cache=True, **OPTIONS), compile_later(_SOURCES[1], cache=True, **OPTIONS)
