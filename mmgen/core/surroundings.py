"""What a command reads of its environment variables, and what it keeps from the libraries that it uses.

A notebook's kernel, a scheduler and a launcher set variables for programs of their own, which every command inherits. A
command itself reads those that begin with ``MMGEN_``, those of :data:`KEPT`, ``OMP_NUM_THREADS``, and what the optional
libraries of ``--log-to`` and ``make-data hub`` document. Settings of the libraries below are made by the command alone.
"""

import os
from collections.abc import MutableMapping
from pathlib import Path

from mmgen.core.errors import UsageError

RANK = "MMGEN_RANK"
"""Environment variable of one of several processes that train together: its number; the first, 0, talks."""

SET_BY_US = (
    "ARROW_", "GOMP_", "HDF5_", "JOBLIB_", "LOKY_", "LT_", "MATPLOTLIB", "MPL", "NPY_", "NUMBA_", "OMP_", "PYDANTIC_",
    "PYTORCH_", "SCIPY_", "TERMINAL_WIDTH", "TORCHDYNAMO_", "TORCHINDUCTOR_", "TORCH_", "TQDM_",
)  # fmt: skip
"""Beginnings of the variables that set up a library, or what it is built on; a launcher's are not among them."""

KEPT = ("HDF5_USE_FILE_LOCKING", "MPLCONFIGDIR", "NUMBA_CACHE_DIR", "OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF")
"""Those of them that say where to store files, and what a machine's disk, cores and memory need."""

_KEPT_COUNTS = ("LOKY_MAX_CPU_COUNT", "NUMBA_NUM_THREADS")  # of processors


def keep_from_libraries(variables: MutableMapping[str, str]) -> None:
    """Remove what would set up a library in a way that we do not; no settings file of the user's is read either.

    Example:
        >>> variables = {"MPLBACKEND": "inline", "MPLCONFIGDIR": "/tmp", "HOME": "/root"}
        >>> keep_from_libraries(variables)
        >>> sorted(variables)
        ['HOME', 'MATPLOTLIBRC', 'MPLCONFIGDIR']
    """
    for name, value in list(variables.items()):
        is_kept = name in KEPT or (name in _KEPT_COUNTS and value.isdecimal())
        if name.startswith(SET_BY_US) and not is_kept:
            del variables[name]
    variables["MATPLOTLIBRC"] = os.devnull  # an empty file


def cache_folder(name: str) -> Path:
    """Return the folder ``name`` in that of ``MMGEN_CACHE``, or in the user's (``~/.cache/mmgen`` on Linux).

    Raises:
        UsageError: The user has no home, as in some containers.
    """
    from platformdirs import user_cache_path

    named = os.environ.get("MMGEN_CACHE")
    try:
        folder = Path(named) if named else user_cache_path("mmgen", appauthor=False)
    except RuntimeError:
        folder = Path()
    if not (named or folder.is_absolute()):
        raise UsageError(
            "this user has no home folder, where mmgen would keep what it downloads; name a folder with the variable "
            "MMGEN_CACHE"
        )
    return folder / name


def is_first_process() -> bool:
    """Return whether this process is the first of those that train together; only the first prints."""
    return os.environ.get(RANK, "0") == "0"
