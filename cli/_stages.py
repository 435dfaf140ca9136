"""Running ``mmgen`` commands one after the other, each as a process of its own."""

import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mmgen.errors import MmgenError

__all__ = ["end_with_children", "run_command"]


def run_command(arguments: Sequence[str], folder: Path, what: str) -> str:
    """Run ``mmgen`` with ``arguments`` in ``folder`` and return its stdout; its talk goes to our stderr.

    Args:
        arguments: What follows ``mmgen``.
        folder: Where its paths begin.
        what: What ends if it fails, for the message ("the quickstart").

    Raises:
        MmgenError: It failed; our exit code is its own.
    """
    # -P: a file in the folder must not be taken for a module.
    command = [sys.executable, "-P", "-m", "mmgen", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        made, _ = process.communicate()
    finally:
        if process.poll() is None:  # we were interrupted or terminated: it saves what it has
            process.terminate()
            process.wait()
    if process.returncode:
        error = MmgenError(f"this command failed, so {what} ends here: {shlex.join(['mmgen', *arguments])}")
        error.exit_code = max(process.returncode, 1)
        raise error
    return made


def end_with_children() -> None:
    """Leave through SystemExit when we are terminated, so that :func:`run_command` ends its process first."""

    def terminated(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, terminated)
