"""Types of arguments that functions and commands share, and the four annotations from which options are made.

A field is an option of its name without any: ``size`` is ``--size PIXELS``, and one that is true or false ``--masks``.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Protocol, runtime_checkable

FileFinder = Callable[[Path], list[Path]]
"""Function that returns the files for which a folder stands; [] if it has none, or is no folder."""

MOST_STEPS, MOST_MINUTES = 10**9, 10**6
"""Length of a training at most, some two years: more is a slip, or not finite."""
_LONGEST_NAME = 255
"""Largest number of bytes in a name on common file systems."""
_LONGEST_PATH = 4096


@dataclass(frozen=True)
class Range:
    """Annotation with the inclusive bounds of a number; pydantic checks them."""

    least: float | None = None
    most: float | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        schema = handler(source)
        number = schema["schema"] if schema["type"] == "nullable" else schema  # of a number or None
        bounds = {"ge": self.least, "le": self.most}
        number.update({name: bound for name, bound in bounds.items() if bound is not None})
        return schema


@dataclass(frozen=True)
class InputFile:
    """Annotation of a field whose value is an existing file; on the command line ``-`` reads its path from stdin.

    Attributes:
        content: Kind of the file, for messages ("dataset").
        folders: Function that returns the files for which a folder stands; None where folders are refused.
    """

    content: str
    folders: FileFinder | None = None


class MemberOf:
    """Annotation of a field whose value is a registered name, such as that of a metric, or a word in ``further``."""

    def __init__(self, room: str, *further: str) -> None:
        self.room, self.further = room, further


class Option:
    """Annotation of a field with the way in which it is typed.

    Args:
        names: Names of the option, ``"--from"``; a short one alone stands beside that of the field. ``"--set"`` takes
            assignments, KEY=VALUE, to a mapping.
        metavar: Name of the value in help.
        default: The default in words, where the field's is None.
        words: What shell completion offers.
        commas: Whether several values are typed as one word: ``a,b,c``.
        nothing: The word for no value at all, where ``commas``.
        positional: Whether it is an argument, given by its place, as those without a default always are in commands.
        switches: Options without a value that set the field, at most one of them at a time: by name their value and
            help. One whose value is outside the field's type is hidden; the field's validator then refuses it.

    Example:
        >>> Option(switches={"--grey": (False, "Keep the grey levels.")}).switches["--grey"][0]
        False
    """

    def __init__(
        self,
        *names: str,
        metavar: str = "",
        default: str = "",
        words: Sequence[str] = (),
        commas: bool = False,
        nothing: str = "",
        positional: bool = False,
        switches: Mapping[str, tuple[Any, str]] = MappingProxyType({}),
    ) -> None:
        self.names, self.metavar, self.default, self.words = names, metavar, default, words
        self.commas, self.nothing, self.positional, self.switches = commas, nothing, positional, switches


class _FileName:
    """Annotation of a path; pydantic checks that a file can have this path."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(_check_path, handler(source))


def _check_path(path: str | Path) -> str | Path:
    from mmgen.settings.arguments import format_value

    text = str(path)
    if not text or "\0" in text:
        raise ValueError(
            f"got {format_value(text)}, expected the path of a file{' without null characters' * (text != '')}"
        )
    try:
        raw = os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(f"got {format_value(text)}, expected a path that can be encoded in UTF-8") from None
    longest = max(len(part) for part in raw.split(os.fsencode(os.sep)))
    if longest > _LONGEST_NAME or len(raw) > _LONGEST_PATH:
        most = _LONGEST_NAME if longest > _LONGEST_NAME else _LONGEST_PATH
        raise ValueError(f"got {format_value(text)}, expected names of at most {most:,} bytes")
    return path


@runtime_checkable
class HasPath(Protocol):
    """Protocol of an object with the path of its file, such as a dataset or a trained model."""

    @property
    def path(self) -> Any:
        """Path of the file that the object was read from."""


FilePath = Annotated[str | Path, _FileName()]
"""The path of a file."""
File = FilePath | HasPath
"""A file by its path, or an object that knows its path."""
Seed = Annotated[int, Range(0, 2**63 - 1)]
"""A seed, as headers hold it."""
Count = Annotated[int, Range(1, 2**63 - 1)]
"""A number of things, at least one."""


def optional_path(file: File | None) -> Path | None:
    """Return the path of a file, named by its path or by the object read from it; None for None."""
    return None if file is None else path_of(file)


def paths_of(files: File | Sequence[File]) -> list[Path]:
    """Return the paths of one or several files, each named by its path or by the object read from it."""
    return [path_of(files)] if isinstance(files, str | Path | HasPath) else [path_of(one) for one in files]


def path_of(file: File) -> Path:
    """Return the path of a file, named by its path or by the object read from it."""
    return Path(file if isinstance(file, str | Path) else file.path)
