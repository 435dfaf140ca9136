"""Imports of libraries that read settings from the current folder, whose files may be hostile.

matplotlib reads ``matplotlibrc`` there, by which it can start LaTeX or wait for a pipe for ever; numba reads
``.numba_config.yaml``; Weights & Biases reads ``wandb/settings``, which can name the server that gets its key.
"""

import os
from contextlib import AbstractContextManager, chdir, nullcontext

__all__ = ["outside_current_folder"]


def outside_current_folder() -> AbstractContextManager[None]:
    """Change the current folder to "/" inside a ``with`` block, so that no file of the user's folder is imported.

    Example:
        >>> here = os.getcwd()
        >>> with outside_current_folder():
        ...     os.getcwd() == here
        False
        >>> os.getcwd() == here
        True
    """
    try:
        os.getcwd()
    except OSError:  # a folder that is gone holds no settings, and there is no way back
        return nullcontext()
    return chdir(os.path.abspath(os.sep))
