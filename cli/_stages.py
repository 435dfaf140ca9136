"""Running ``mmgen`` commands as processes."""

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
