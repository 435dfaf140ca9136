"""Stages by the names of their commands: the files of this folder without a leading underscore."""

import importlib
from pathlib import Path
from typing import Any

__all__ = ["command_name", "source_file_of", "stage_class", "stage_names"]

_FILES = {"eval": "evaluate"}
"""Files that are not called as their command is."""


def stage_names() -> list[str]:
    """Return the names of all commands, sorted, without importing them."""
    files = [path.stem for path in Path(__file__).parent.glob("[!_]*.py")]
    return sorted(map(command_name, files))


def command_name(file: str) -> str:
    """Return the name of the command of a file, by its stem."""
    return {stem: command for command, stem in _FILES.items()}.get(file, file.replace("_", "-"))


def source_file_of(command: str) -> Path:
    """Return the Python file in which a command is defined."""
    return Path(__file__).with_name(f"{_FILES.get(command, command.replace('-', '_'))}.py")


def stage_class(command: str) -> Any:
    """Import the class of a command and return it."""
    module = importlib.import_module(f"{__package__}.{source_file_of(command).stem}")
    (name,) = module.__all__
    return getattr(module, name)
