"""What stands beside the core: ``mmgen/contrib/NAME`` is a world of its own, with a folder for each room it adds to.

A file ``mmgen/contrib/graphs/models/graph_vae.py`` is a member of the room ``mmgen/models``, as if it stood there. The
core names no world: rooms look for what there is, and a world can be removed as a folder.
"""

import importlib
from functools import cache
from pathlib import Path
from types import ModuleType

HOME = Path(__file__).resolve().parents[1]
CONTRIB = HOME / "contrib"


@cache
def added_folders(room: str) -> dict[str, Path]:
    """Return the folders that worlds add to a room, by the dotted names of their modules' package.

    Args:
        room: Dotted name of the room's package; its last part is the name of the folders.

    Example:
        >>> list(added_folders("mmgen.nothing"))
        []
    """
    name = room.rpartition(".")[2]
    folders = sorted(folder for folder in CONTRIB.glob(f"*/{name}") if folder.is_dir())
    return {f"mmgen.contrib.{folder.parent.name}.{name}": folder for folder in folders}


def added_files(room: str) -> dict[str, Path]:
    """Return the public Python files that worlds add to a room, by the dotted names of their modules."""
    return {
        f"{package}.{file.stem}": file
        for package, folder in added_folders(room).items()
        for file in sorted(folder.glob("[!_]*.py"))
    }


def import_added(room: str, file: str) -> list[ModuleType]:
    """Import the modules of this name that worlds add to a room."""
    return [importlib.import_module(name) for name in added_files(room) if name.rpartition(".")[2] == file]


def require_added(room: str, file: str, world: str, what: str) -> ModuleType:
    """Import the module of this name that a world adds to a room.

    Args:
        room: Dotted name of the room's package.
        file: Name of the module.
        world: The world that has it.
        what: What needs it, with which a message begins.

    Raises:
        UsageError: This installation lacks the world.
    """
    found = import_added(room, file)
    if not found:
        from mmgen.core.errors import UsageError  # `import mmgen` does without

        raise UsageError(f"{what} needs mmgen.contrib.{world}, which this installation lacks")
    return found[0]


def data_files(room: str, folder: Path, pattern: str) -> dict[str, Path]:
    """Return data files of a room and of what worlds add to it, by their paths below it without the ending.

    Args:
        room: Dotted name of the room's package.
        folder: The room's own folder.
        pattern: Pattern of the paths, such as "*/*.toml".
    """
    return {
        file.relative_to(each).with_suffix("").as_posix(): file
        for each in (folder, *added_folders(room).values())
        for file in sorted(each.glob(pattern))
    }
