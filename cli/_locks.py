"""Locks on the output files of stages, so that one process at a time makes a file.

The process that runs a stage holds the lock, and so does its child that makes the file: if the parent is killed, the
child may go on, and the next run waits for it instead of writing the same file.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmgen.artifacts.files import open_internal_file
from mmgen.cli._console import say
from mmgen.core.errors import Interrupted, MmgenError, reason_of

__all__ = ["hold_lock"]

_RETRY_SECONDS = 0.5  # seconds between attempts to get a lock that another process holds


@contextmanager
def hold_lock(path: Path, is_needed: Callable[[], bool]) -> Iterator[int]:
    """Hold the lock of the file ``path`` in this block, and yield the descriptor of the lock file.

    Args:
        path: The file to be made; its lock file lies beside it.
        is_needed: Whether to wait on while another process holds the lock.

    Raises:
        Interrupted: The lock is no longer needed.
        MmgenError: The file system has no locks.
    """
    lock_file = path.with_name(f".{path.name}.lock")
    handle = _wait_for_lock(lock_file, is_needed)
    try:
        yield handle
    finally:
        with suppress(OSError):
            lock_file.unlink()  # while it is locked: a waiting process sees that it is gone, and makes another
        os.close(handle)


def _wait_for_lock(lock_file: Path, is_needed: Callable[[], bool]) -> int:
    """Wait until this process holds the lock, and return the descriptor of the lock file."""
    is_announced = False
    while True:
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = open_internal_file(lock_file, os.O_RDWR)
        except OSError as error:
            raise _lock_error(lock_file, error) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(lock_file)):
                    return handle
            os.close(handle)
            continue
        except BlockingIOError:
            os.close(handle)
        except OSError as error:
            os.close(handle)
            raise _lock_error(lock_file, error) from None
        if not is_announced:
            made = lock_file.name.removeprefix(".").removesuffix(".lock")
            say(f"another process makes {made} already; waiting for it")
            is_announced = True
        if not is_needed():
            raise Interrupted(f"another process held the lock {lock_file} until this run was stopped; run it again", 15)
        time.sleep(_RETRY_SECONDS)


def _lock_error(lock_file: Path, error: OSError) -> MmgenError:
    return MmgenError(
        f"cannot lock {lock_file}: {reason_of(error)}; use a folder on a file system that has locks (--output)"
    )
