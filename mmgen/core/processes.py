"""Child processes: their import path, their number, and their end when the parent ends.

A downloaded folder of pictures or an experiment may hold a ``numpy.py``. No process started here has the current
folder on its import path, and none outlives its parent.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

from mmgen.core.errors import MmgenError
from mmgen.core.job import granted_cores
from mmgen.core.surroundings import keep_from_libraries

MOST = 1000
"""Largest number of processes."""

OWNER = "MMGEN_OWNER"
"""Environment variable of a child process: the number of its parent."""

A_CORE = 4
"""Most processes for each core."""

_LOOK_EVERY = 0.25  # seconds, whether the owner is there
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_is_program = False
_HOME = str(Path(__file__).resolve().parents[2])


def _current_folder_test() -> Callable[[str], bool]:
    """Return a function that is True for an entry of sys.path that is the current folder."""
    try:
        current = os.stat(".")
    except OSError:  # which was removed
        return lambda entry: not entry

    def is_current_folder(entry: str) -> bool:
        with suppress(OSError, ValueError):
            return not entry or os.path.samestat(os.stat(entry), current)
        return False

    return is_current_folder


def remove_current_folder(path: Sequence[str]) -> list[str]:
    """Return the entries of an import path (sys.path) that are not the current folder.

    Where mmgen itself, or the script that uses it, lies in that folder, it comes last: no file in it can take the place
    of an installed module.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    needed = {_HOME, *([] if script is None else [str(Path(script).resolve().parent)])}
    is_current_folder = _current_folder_test()
    return [entry for entry in path if not is_current_folder(entry)] + [
        entry for entry in needed if is_current_folder(entry)
    ][:1]


def _safe_path_variables() -> dict[str, str]:
    """Return environment variables that keep the current folder out of a Python process's import path."""
    is_current_folder = _current_folder_test()
    absolute = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(entry)]
    entries = [entry for entry in absolute if entry == _HOME or not is_current_folder(entry)]
    if is_current_folder(_HOME) and _HOME not in entries:
        entries.append(_HOME)
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(entries)}


def child_environment() -> dict[str, str]:
    """Return environment variables for a Python process that must end when this one ends."""
    return {**_safe_path_variables(), OWNER: str(os.getpid())}


@contextmanager
def safe_import_path() -> Iterator[None]:
    """Keep the current folder out of the import path of processes that are started inside a ``with`` block."""
    path, variables = list(sys.path), _safe_path_variables()
    before = {name: os.environ.get(name) for name in variables}
    cleaned = remove_current_folder(path)
    sys.path[:] = cleaned
    os.environ.update(variables)
    try:
        yield
    finally:
        if sys.path == cleaned:
            sys.path[:] = path
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def start_mmgen(
    arguments: Sequence[str], environment: Mapping[str, str] = MappingProxyType({}), **options: Any
) -> "subprocess.Popen[str]":
    """Start ``mmgen`` as a process that ends when this process ends, even if this one is killed.

    Args:
        arguments: Arguments of ``mmgen``.
        environment: Variables that it has besides ours, or in their place.
        options: As for :class:`subprocess.Popen`.
    """
    command = [sys.executable, "-P", "-m", "mmgen", *arguments]
    return subprocess.Popen(command, env={**os.environ, **environment, **child_environment()}, text=True, **options)


def limit_threads() -> None:
    """Let libraries take as many threads as this process is granted, unless somebody says otherwise."""
    cores = granted_cores()
    if cores >= (os.cpu_count() or 1) or "OMP_NUM_THREADS" in os.environ:
        return
    for name in ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):  # which count those of the machine
        os.environ.setdefault(name, str(cores))
    if torch := sys.modules.get("torch"):  # of a script that has loaded it before us
        torch.set_num_threads(min(cores, torch.get_num_threads()))


def prepare_program() -> None:
    """Set up this process as a command of ``mmgen``: import path, environment, end with the parent process.

    Raises:
        MmgenError: Another ``mmgen`` has started this one in a way in which the current folder was on the path.
    """
    global _is_program
    _is_program = True
    sys.path[:] = remove_current_folder(sys.path)
    os.environ.update(_safe_path_variables())
    keep_from_libraries(os.environ)
    limit_threads()
    owner = os.environ.pop(OWNER, "")  # what we start has us
    if owner.isdecimal():
        prepare_worker(int(owner))


def is_program() -> bool:
    """Return True if this process runs an ``mmgen`` command, False in a script that imports mmgen."""
    return _is_program


def prepare_worker(owner: int, by_kernel: bool = True) -> None:
    """Set up this process as a worker that ends when the process ``owner`` ends.

    Args:
        owner: The other's number.
        by_kernel: As for :func:`end_with_parent`.

    Raises:
        MmgenError: The current folder was on the import path as the process began.
    """
    sys.path[:] = remove_current_folder(sys.path)
    if not sys.flags.safe_path or _current_folder_test()((sys.path or [""])[0]):
        raise MmgenError(
            "a process of mmgen has the current folder on its import path, which is unsafe; please report this bug"
        )
    end_with_parent(owner, by_kernel)


def end_with_parent(owner: int, by_kernel: bool = True) -> None:
    """End this process as soon as the process ``owner``, its parent, ends.

    Args:
        owner: The parent's number.
        by_kernel: Whether Linux may see to it, which does so at once even while a library computes. It takes the end of
            the thread that has started us for the end of the process: that thread must not end before its work does.
    """
    if by_kernel and sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)

    def wait_for_owner() -> None:
        while os.getppid() == owner:
            time.sleep(_LOOK_EVERY)
        os._exit(1)

    if os.getppid() != owner:
        os._exit(1)
    threading.Thread(target=wait_for_owner, name="watch-owner", daemon=True).start()


def choose_process_count(requested: int | None, cores: int) -> int:
    """Return the number of worker processes: ``requested``, at most four a core, by default one per core."""
    return cores if requested is None else min(requested, A_CORE * cores)


_STOP_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGXCPU")
STOP_SIGNALS = tuple(signal.Signals[name] for name in _STOP_NAMES if hasattr(signal, name))
"""Signals that ask to stop: of a person, a system, a terminal that closes, a scheduler, the limit of processor time."""

REPEAT_SECONDS = 1.0
"""Seconds in which a terminal or a scheduler, and a program that runs this one, may all pass one request to stop on."""
stop_requests: dict[int, float] = {}
"""Signals that have raised an exception in this command, and when; whatever goes on in spite of them has lost it."""


def repeat_lost_request() -> None:
    """Send a signal again that has raised an exception, which a library must have swallowed, since work goes on."""
    for number, asked in [*stop_requests.items()]:
        if time.monotonic() - asked > REPEAT_SECONDS:
            del stop_requests[number]
            signal.raise_signal(number)


def stop_handlers() -> dict[int, Any]:
    """Return the handlers of the signals that ask to stop, but for those that are ignored, as after ``nohup``.

    In a script the signals of schedulers and terminals that somebody else handles are left to them.
    """
    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    return {
        number: handler
        for number, handler in handlers.items()
        if handler not in (signal.SIG_IGN, None)
        and (number in STOP_SIGNALS[:2] or handler == signal.SIG_DFL or is_program())
    }


class StopRequest:
    """Request to stop a run, with the number of the signal; None if there was none."""

    signal_number: int | None = None


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn the first signal that asks to stop within a block into a request; a second one ends the process."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may install handlers
        return
    previous = stop_handlers()

    requested_at = 0.0

    def restore_handlers() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal requested_at
        if request.signal_number is None:
            request.signal_number, requested_at = number, time.monotonic()
        elif time.monotonic() - requested_at > REPEAT_SECONDS:
            restore_handlers()
            signal.raise_signal(number)

    for number in previous:
        signal.signal(number, handle)
    try:
        yield request
    finally:
        restore_handlers()
