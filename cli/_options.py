"""Options and arguments that several commands share, and what reads them."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mmgen.errors import MmgenError

__all__ = [
    "Device",
    "Guidance",
    "InputPath",
    "Output",
    "Seed",
    "Workers",
    "command_line",
    "read_path",
    "remember_command_line",
]

InputPath = Annotated[
    str, typer.Argument(metavar="FILE", show_default=False, help="File to start from; '-' reads its path from stdin.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="PATH", show_default=False, help="Where to write; named after the input by default."
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="All randomness comes from this number.")]
Device = Annotated[str, typer.Option("--device", metavar="NAME", help="Where to compute: auto, cpu, cuda, cuda:1.")]
Guidance = Annotated[
    float,
    typer.Option(
        "--guidance",
        metavar="W",
        show_default="0",
        help="Tilt what z is drawn from by p(words | z)^W, the model's own reading of z: the higher, the more "
        "literally the words are taken; 3, for example.",
    ),
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, show_default=False, help="Processes; all cores by default.")
]

_arguments: list[str] = []


def remember_command_line(arguments: Sequence[str]) -> None:
    """Note what the user typed after ``mmgen``, for :func:`command_line`."""
    _arguments[:] = arguments


def command_line() -> str:
    """The command as it could be typed again: ``mmgen train ...``, with ``-`` replaced by the path that was read."""
    return shlex.join(["mmgen", *_arguments])


def read_path(text: str, what: str = "file") -> Path:
    """The existing path that an argument names; ``-`` reads it from the last non-empty line of stdin.

    Args:
        text: The argument as typed.
        what: What the file should be, for the message ("dataset").

    Raises:
        MmgenError: Nothing came from stdin, or there is no such file.
    """
    if text == "-":
        lines = [line.strip() for line in sys.stdin.read().splitlines() if line.strip()]
        if not lines:
            raise MmgenError(
                f"expected the path of a {what} on stdin, got nothing: the command before this one in the pipe failed"
            )
        text = lines[-1]
        # The recorded command must work without the pipe, and so must the further processes of --devices, which are
        # started from sys.argv and find an empty stdin.
        _arguments[:] = [text if argument == "-" else argument for argument in _arguments]
        sys.argv[1:] = [text if argument == "-" else argument for argument in sys.argv[1:]]
    path = Path(text)
    if not path.exists():
        raise MmgenError(f"there is no {what} at {path}: check the path, or make it with the command before")
    return path
