"""Commands as processes: their output folder, the locks of the files that they make, and their end."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO

from mmgen.artifacts.files import try_lock
from mmgen.cli._console import say
from mmgen.core.errors import Interrupted, MmgenError, reason_of
from mmgen.core.processes import start_mmgen

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
            if (handle := try_lock(lock_file)) is not None:
                return handle
        except ImportError:
            raise MmgenError(
                "this system has no locks of files, which a run of several stages needs; use Linux, macOS or WSL, or "
                "type the commands that --dry-run lists"
            ) from None
        except OSError as error:
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


@contextmanager
def create_output_folder(folder: Path, disposable: Collection[str] = ()) -> Iterator[None]:
    """Create a folder and its parents for this block; if the block fails, remove those that are still empty.

    Args:
        folder: The output folder.
        disposable: Names of files that are removed with an otherwise empty folder.

    Raises:
        MmgenError: The folder cannot be created.
    """
    created: list[Path] = []
    try:
        try:
            created = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = "it is there and is no folder" if isinstance(error, FileExistsError) else reason_of(error)
            raise MmgenError(f"cannot use the folder {folder}: {why}; choose another with --output") from None
        yield
    except BaseException:
        with suppress(OSError):  # another process may use it too
            if folder in created and all(path.name in disposable for path in folder.iterdir()):
                for name in disposable:
                    (folder / name).unlink(missing_ok=True)
        for path in created:
            with suppress(OSError):  # one with content stays
                path.rmdir()
        raise


_POLL_SECONDS = 0.2  # seconds; well below the second in which a command counts two signals as one request


def run_command(
    arguments: Sequence[str],
    folder: Path,
    run_name: str,
    *,
    log: IO[bytes] | None = None,
    descriptors: Sequence[int] = (),
    is_needed: Callable[[], bool] = lambda: True,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Run ``mmgen`` as a process and return its stdout.

    Args:
        arguments: Arguments after ``mmgen``.
        folder: Current folder of the process.
        run_name: Noun for the run in errors.
        log: File for its messages; None for this process's stderr.
        descriptors: File descriptors that the process inherits.
        is_needed: Whether to go on; asked several times a second.
        environment: Further environment variables.

    Raises:
        Interrupted: The command is no longer needed, and was stopped.
        MmgenError: The command failed; with its exit code.
    """
    process = start_mmgen(
        arguments,
        environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        pass_fds=descriptors,
    )
    try:
        output = None
        while output is None:
            with suppress(subprocess.TimeoutExpired):
                output, _ = process.communicate(timeout=_POLL_SECONDS)
            if output is None and not is_needed():
                raise Interrupted(
                    f"{shlex.join(['mmgen', *arguments])} was stopped because the run ended; run it again",
                    signal.SIGTERM,
                )
    except KeyboardInterrupt:  # it saves its state; the terminal's request and this one count as one
        process.terminate()
        process.communicate()
        raise
    finally:
        if process.poll() is None:  # it is no longer needed, or this process was terminated or interrupted twice
            process.terminate()
            process.wait()
    if process.returncode:
        reason = _describe_exit(process.returncode)
        error = MmgenError(f"{reason}, so {run_name} ends here: {shlex.join(['mmgen', *arguments])}")
        error.exit_code = max(process.returncode, 1)
        raise error
    return output


def _describe_exit(code: int) -> str:
    """Return a clause on why a process ended, by its exit code; a negative code is the number of a signal."""
    if code > 0:
        return "this command failed"
    if -code == signal.SIGKILL:
        return "this command was killed (SIGKILL), most likely because memory ran out (free some and try again)"
    known = {number.value: number.name for number in signal.Signals}
    return f"this command was ended from outside ({known.get(-code, f'signal {-code}')})"
