"""The further processes of a run on several devices: started here, watched, and gone when the run is."""

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from mmgen.core.errors import UsageError
from mmgen.core.processes import OWNER, is_program, start_mmgen

__all__ = ["failure_of_another_process", "connecting", "start_others"]

_LOOK_EVERY = 0.1  # seconds, whether all are there
_LAST_WORDS = 1.0  # seconds in which we may meet what has ended another one, and say it ourselves
_LAST_WORK = 30.0  # seconds in which we may still save, once all have worked together
_GOODBYE = 0.5  # seconds that the others have to end after us

_others: "list[subprocess.Popen[str]]" = []
_joined = threading.Event()


def start_others(count: int, shared: Mapping[str, str]) -> None:
    """Start ``count`` more processes of the running program, ``mmgen`` or a script of the user.

    If one of them fails, we end with a sentence.

    Args:
        count: How many.
        shared: Variables in the environment of each; what numbers them comes besides.

    Raises:
        UsageError: There is nothing that could be started again, as in a notebook.
    """
    main, by_command = sys.modules.get("__main__"), is_program()
    if not by_command and getattr(main, "__file__", None) is None:
        raise UsageError(f"devices got {count + 1}, expected 1 where no script is run, as in a notebook; write one")
    _joined.clear()
    _others.clear()
    for rank in range(1, count + 1):
        environment = {**shared, "LOCAL_RANK": str(rank)}
        if by_command:
            _others.append(start_mmgen(sys.argv[1:], environment, stdin=subprocess.DEVNULL))
            continue
        spec = getattr(main, "__spec__", None)
        again = [os.path.abspath(sys.argv[0])] if spec is None else ["-m", spec.name]
        command = {**os.environ, **environment, OWNER: str(os.getpid())}
        _others.append(subprocess.Popen([sys.executable, *again, *sys.argv[1:]], env=command, text=True))
    atexit.register(_end_others)
    threading.Thread(target=_watch, name="watch-others", daemon=True).start()


@contextmanager
def connecting() -> Iterator[None]:
    """Mark a block in which a process waits for the others to connect, where a failed one is reported at once."""
    try:
        yield
    except BaseException:
        _kill_others()  # before they complain that we have left them
        raise
    _joined.set()


def failure_of_another_process(patience: float = _LAST_WORDS) -> str | None:
    """Return a sentence on another process that has failed, or fails within ``patience`` seconds; None if none has."""
    until = time.monotonic() + patience
    while _others:
        for rank, other in enumerate(_others, 1):
            if code := other.poll():
                how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
                return (
                    f"process {rank + 1} of {len(_others) + 1} (--devices) {how}, and this run with it; look at what "
                    "it said, then give the same command again, or use --devices 1"
                )
        if time.monotonic() > until:
            break
        time.sleep(_LOOK_EVERY)
    return None


def _watch() -> None:
    """End this process once another has failed, since it may wait for it for ever."""
    while any(other.poll() is None for other in _others):
        if any(other.poll() for other in _others):
            break
        time.sleep(_LOOK_EVERY)
    said = failure_of_another_process(0.0)
    if said is None:
        return
    time.sleep(_LAST_WORK if _joined.is_set() else _LAST_WORDS)
    codes = {other.poll() for other in _others}
    _kill_others()
    for code, word in ((130, "interrupted"), (143, "terminated")):  # all were, and we could not hear it
        if code in codes:
            os.write(2, f"mmgen: {word}\n".encode())
            os._exit(code)
    os.write(2, f"mmgen: {said}\n".encode())
    os._exit(1)


def _kill_others() -> None:
    for other in _others:
        with suppress(OSError):
            other.send_signal(signal.SIGKILL)


def _end_others() -> None:
    until = time.monotonic() + _GOODBYE
    for other in _others:
        with suppress(subprocess.TimeoutExpired):
            other.wait(max(0.0, until - time.monotonic()))
    _kill_others()
