"""Types of arguments that functions and commands share: paths of files, seeds, counts and ranges of numbers."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

__all__ = ["Count", "File", "FilePath", "HasPath", "Range", "Seed", "optional_path", "path_of", "paths_of"]

_LONGEST_NAME = 255
"""Largest number of bytes in a name on common file systems."""
_LONGEST_PATH = 4096


@dataclass(frozen=True)
class Range:
    """Annotation with the inclusive bounds of a number; pydantic checks them."""

    least: float | None = None
    most: float | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        bounds = {"ge": self.least, "le": self.most}
        return {**handler(source), **{name: bound for name, bound in bounds.items() if bound is not None}}


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
