"""What is typed in Python as the stages take it, and as the command line would have it."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.generation import TrainedModel
from mmgen.settings.kinds import FilePath

__all__ = ["File", "Settings", "command_of", "mode_of", "optional", "path_of"]

File = FilePath | Dataset | TrainedModel
"""A file by its path, or by what knows it."""
Settings = Mapping[str, Any]


def path_of(file: File) -> Path:
    """The path of a file."""
    return Path(file) if isinstance(file, str | Path) else file.path


def optional(file: File | None) -> Path | None:
    """The path of a file that may be left out."""
    return None if file is None else path_of(file)


def mode_of(resume: bool, overwrite: bool) -> str:
    """What resume and overwrite say about a saved run."""
    if resume and overwrite:
        raise UsageError("resume and overwrite got both, expected one of them: continue the saved run or begin anew")
    return "require" if resume else "never" if overwrite else "auto"


def command_of(words: Sequence[object], options: Mapping[str, object], settings: Settings) -> str:
    """The command that makes the same file."""
    typed = ["mmgen", *map(str, words)]
    for name, value in options.items():
        if value is not None:
            typed += [name, str(value)]
    for name, value in _flat(settings):
        typed += ["--set", f"{name}={json.dumps(value)}"]
    return shlex.join(typed)


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{key}.")
        elif value is not None:
            found.append((f"{before}{key}", str(value) if isinstance(value, Path) else value))
    return found
