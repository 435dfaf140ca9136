"""Running ``mmgen`` commands, each as a process of its own."""

import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO

from mmgen.core.errors import Interrupted, MmgenError
from mmgen.core.processes import start_mmgen

__all__ = ["run_command"]

_ASK_EVERY = 0.2  # seconds; well below the second in which a trainer takes two signals for one request


def run_command(
    arguments: Sequence[str],
    folder: Path,
    what: str,
    *,
    talk: IO[bytes] | None = None,
    keep: Sequence[int] = (),
    is_needed: Callable[[], bool] = lambda: True,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Run ``mmgen`` in ``folder`` and return its stdout; its messages go to stderr."""
    process = start_mmgen(
        arguments, environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=talk, pass_fds=keep
    )
    try:
        made = None
        while made is None:
            with suppress(subprocess.TimeoutExpired):
                made, _ = process.communicate(timeout=_ASK_EVERY)
            if made is None and not is_needed():
                raise Interrupted(
                    f"{shlex.join(['mmgen', *arguments])} was stopped, since the run ended; run it again",
                    signal.SIGTERM,
                )
    except KeyboardInterrupt:  # it saves what it has; a request of the terminal's own and this one count as one
        process.terminate()
        process.communicate()
        raise
    finally:
        if process.poll() is None:  # it is not wanted, or we were terminated, or interrupted twice
            process.terminate()
            process.wait()
    if process.returncode:
        how = _how_it_ended(process.returncode)
        error = MmgenError(f"{how}, so {what} ends here: {shlex.join(['mmgen', *arguments])}")
        error.exit_code = max(process.returncode, 1)
        raise error
    return made


def _how_it_ended(code: int) -> str:
    """Describe the end of a process for a sentence; a negative code is the number of a signal."""
    if code > 0:
        return "this command failed"
    if -code == signal.SIGKILL:
        return "this command was killed (SIGKILL), most likely because memory ran out (free some and try again)"
    known = {number.value: number.name for number in signal.Signals}
    return f"this command was ended from outside ({known.get(-code, f'signal {-code}')})"
