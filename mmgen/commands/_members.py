"""Stages by the names of their commands: the files of this folder without a leading underscore."""

import importlib
from pathlib import Path
from typing import Any

__all__ = ["command_of_file", "source_file_of", "stage_class", "stage_names"]

_FILES = {"eval": "evaluate"}
"""Files that are not called as their command is."""


def stage_names() -> list[str]:
    """Return the names of all commands that are stages, sorted; imports none of them."""
    files = [path.stem for path in Path(__file__).parent.glob("[!_]*.py")]
    return sorted(map(command_of_file, files))


def command_of_file(file: str) -> str:
    """Return the name of the command of a file, by its stem."""
    return {stem: command for command, stem in _FILES.items()}.get(file, file.replace("_", "-"))


def source_file_of(command: str) -> Path:
    """Return the file of a command's stage."""
    return Path(__file__).with_name(f"{_FILES.get(command, command.replace('-', '_'))}.py")


def stage_class(command: str) -> Any:
    """Import and return the class of a command's stage."""
    module = importlib.import_module(f"{__package__}.{source_file_of(command).stem}")
    (name,) = module.__all__
    return getattr(module, name)
