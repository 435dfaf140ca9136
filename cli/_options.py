"""Options and arguments of several commands."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mmgen.cli._streams import read_stdin
from mmgen.commands import Reads
from mmgen.core.errors import MmgenError, UsageError, clip, reason_of
from mmgen.core.processes import MOST

__all__ = [
    "LARGEST_SEED",
    "Code",
    "EarlyCheck",
    "Seed",
    "check_read",
    "check_source",
    "command_line",
    "jobs_option",
    "output_option",
    "read_path",
    "read_paths",
    "remember_command_line",
    "seed_option",
]


@dataclass(frozen=True)
class EarlyCheck:
    """Check in an argument's annotation for lines where another argument is missing: a wrong word is reported first.

    Attributes:
        check: Is given the word, and raises what is wrong with it.
    """

    check: Callable[[str], object]


def output_option(default: str) -> Any:
    """Return --output, with its default in words."""
    return typer.Option("--output", "-o", metavar="PATH", show_default=False, help=f"Where to write; {default}.")


LARGEST_SEED = 2**63 - 1


def seed_option(text: str = "All randomness comes from this number.", **more: Any) -> Any:
    """Return --seed, with its use in words; no header holds a larger one."""
    return typer.Option("--seed", min=0, max=LARGEST_SEED, help=text, **more)


def jobs_option(default: str, what: str) -> Any:
    """Return --jobs, with its default and its unit in words."""
    return typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        max=MOST,
        show_default=default,
        help=f"{what} that run at once on this machine, each with its share of the cores, at most four a core; "
        "1: one after the other.",
    )


Seed = Annotated[int, seed_option()]
Code = Annotated[
    list[Path] | None,
    typer.Option(
        "--code",
        metavar="FILE.py",
        show_default=False,
        help="Run this Python file first: its objectives, networks, recipes, metrics ... can be named like others.",
    ),
]

_arguments: list[str] = []


def remember_command_line(arguments: Sequence[str]) -> None:
    """Remember the arguments after ``mmgen``, for :func:`command_line`."""
    _arguments[:] = arguments


def command_line() -> str:
    """Return the command as it could be typed again: ``mmgen train ...``, with ``-`` replaced by the path read."""
    return shlex.join(["mmgen", *_arguments])


def read_path(text: str, what: str = "file") -> Path:
    """Return the existing path that an argument names; ``-`` reads it from stdin."""
    if text == "-":
        lines = _piped(what)
        if len(lines) > 1:
            raise UsageError(
                f"- got {len(lines)} paths on stdin, {_join_lines(lines)}, expected that of one {what}; name it instead"
            )
        text = lines[0]
    return _there(text, what)


def read_paths(texts: Sequence[str], what: str = "file", folders: bool = False) -> list[Path]:
    """Return the existing paths that arguments name, each once; ``-`` stands for all those on stdin, one a line."""
    named = [line for text in texts for line in (_piped(what) if text == "-" else [text])]
    if folders:
        from mmgen.commands import reported_files

        named = [file for text in named for file in map(str, reported_files(Path(text)) or [Path(text)])]
    return list(dict.fromkeys(_there(text, what) for text in named))


def _piped(what: str) -> list[str]:
    """Return the paths on stdin, which replace an argument ``-``."""
    if (count := _arguments.count("-")) > 1:
        raise UsageError(f"- stands {count} times in this command, expected once: stdin is read once; name the others")
    lines = [line.strip() for line in read_stdin().splitlines() if line.strip()]
    if not lines:
        raise MmgenError(
            f"expected the path of a {what} on stdin, got nothing: the command before this one in the pipe failed"
        )
    # The recorded command must work without the pipe, and so must the further processes of --devices, which are
    # started from sys.argv and find an empty stdin.
    _arguments[:] = _filled(_arguments, lines)
    sys.argv[1:] = _filled(sys.argv[1:], lines)
    return lines


def _filled(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    return [word for typed in arguments for word in (lines if typed == "-" else [typed])]


def _join_lines(lines: Sequence[str]) -> str:
    return clip(" and ".join(map(repr, lines)), 300)


def _there(text: str, what: str) -> Path:
    path = Path(text)
    _check_there(path, what)
    if not path.is_dir():
        return path
    from mmgen.artifacts.files import exported_file

    found = exported_file(path, what)
    if found == path:
        from mmgen.cli._mistakes import folder_for_file

        raise MmgenError(folder_for_file(path, what))
    # The folder is named where mmgen.load takes it: files made of it lie beside it. Beside "." there is nothing.
    return path if what == "model or aggregate" and path.name else found


def _check_there(path: Path, what: str, makes: str = Reads("file").makes) -> None:
    try:
        os.stat(path)
    except FileNotFoundError:
        raise MmgenError(f"there is no {what} at {path}: check the path{makes}") from None
    except (OSError, ValueError) as error:
        raise MmgenError(f"cannot read the {what} {str(path)!r}: {reason_of(error)}; check the path") from None


def check_read(reads: Reads, value: str | Path | list[Path] | None) -> None:
    """Refuse the path of a file that an option reads and that is not there, before all work."""
    for path in value if isinstance(value, list) else [value]:
        if path is not None and not (reads.piped and str(path) == "-"):
            _check_there(Path(path), reads.what, reads.makes)


_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".pbm", ".h5", ".hdf5")
"""Endings that are a file's; other words with a dot may be names of modalities."""


def check_source(value: str | None) -> None:
    """Refuse the same of --from, which takes names of modalities too: a file ends like one, or stands behind a =."""
    text = str(value or "")
    name, equals, file = text.partition("=")
    named = equals and re.fullmatch(r"[A-Za-z][\w.-]*", name)
    if (named or text.lower().endswith(_PICTURES)) and not os.path.exists(text):
        _check_there(Path(file if named else text), "picture", "; name a picture, or an HDF5 file (.h5) of images")
