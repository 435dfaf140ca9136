"""Locks on the files that stages make, so that one process at a time makes a file.

Whoever runs a stage holds the lock, and so does the process that makes the file: if we are killed, that process may go
on, and the next one waits for it instead of writing the same file beside it.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmgen.artifacts.files import open_own
from mmgen.cli._console import say
from mmgen.core.errors import Interrupted, MmgenError, reason_of

__all__ = ["locked"]

_ASK_EVERY = 0.5  # seconds, for a lock that somebody else holds


@contextmanager
def locked(path: Path, is_needed: Callable[[], bool]) -> Iterator[int]:
    """Hold the lock of ``path`` in this block, and yield the locked file; waits while ``is_needed`` returns True."""
    name = path.with_name(f".{path.name}.lock")
    handle = _open_locked(name, is_needed)
    try:
        yield handle
    finally:
        with suppress(OSError):
            name.unlink()  # while we hold it: whoever waits sees that it is gone, and makes another
        os.close(handle)


def _open_locked(name: Path, is_needed: Callable[[], bool]) -> int:
    is_announced = False
    while True:
        name.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = open_own(name, os.O_RDWR)
        except OSError as error:
            raise _no_lock(name, error) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(name)):
                    return handle
            os.close(handle)
            continue
        except BlockingIOError:
            os.close(handle)
        except OSError as error:
            os.close(handle)
            raise _no_lock(name, error) from None
        if not is_announced:
            say(f"somebody else makes {name.name.removeprefix('.').removesuffix('.lock')} already; waiting for them")
            is_announced = True
        if not is_needed():
            raise Interrupted(f"{name} was locked by another process until the run was stopped; run it again", 15)
        time.sleep(_ASK_EVERY)


def _no_lock(name: Path, error: OSError) -> MmgenError:
    return MmgenError(
        f"cannot lock {name}: {reason_of(error)}; use a folder on a file system that has locks (--output)"
    )
