"""Folders of pictures as parts of a split or as classes."""

import posixpath
from collections.abc import Sequence

from mmgen.core.errors import DataError
from mmgen.data_recipes._own._files import listed
from mmgen.data_recipes._part_names import could_be_parts, parts_of, split_name

__all__ = ["CLASSES", "parts_by_folder", "parts_by_name"]

CLASSES = "--folders-are-classes"
"""The option for folders as classes."""

Folders = list[tuple[str, ...]]
"""Folders of each picture [N], outermost first."""


def parts_by_folder(folders: Folders, where: str, has_parts: bool) -> tuple[list[str] | None, Folders]:
    """Return the part (train, val, test) of each picture [N] by its folders, or None, and the class folders."""
    folders = _without_repeats(folders)
    levels: dict[int, list[str]] = {}
    for level in range(max(map(len, folders))):
        names = _names(folders, level)
        if parts_here := parts_of(names):
            levels[level] = [parts_here[parts[level]] for parts in folders]
    if not levels:
        if not has_parts:
            _check_others(folders, where)
        return None, folders
    (first, parts), *others = levels.items()
    for level, more in others:
        if more != parts:
            raise DataError(
                f"the folders {listed(_names(folders, first))} and, in them, {listed(_names(folders, level))} in "
                f"{where} say different parts; rename the ones or the others, or take all of them as classes with "
                f"{CLASSES}"
            )
    if "train" not in parts and not has_parts:
        raise DataError(
            f"no picture in {where} is in the part train, only in {listed(_names(folders, first))}; call one "
            f"of them train, or take folders as classes with {CLASSES}"
        )
    return parts, [tuple(name for level, name in enumerate(each) if level not in levels) for each in folders]


def parts_by_name(names: Sequence[str]) -> list[str] | None:
    """Return the part of each picture [N] by the name of its file (train_001.png); None where names tell none."""
    # All of them must say one, train among them, and in some folder more than one: "train stations/train 1.png" says
    # what the folder is about.
    parts = [split_name(posixpath.splitext(posixpath.basename(name))[0])[0] for name in names]
    if not all(parts) or "train" not in parts:
        return None
    of_folder: dict[str, set[str]] = {}
    for name, part in zip(names, parts, strict=True):
        of_folder.setdefault(posixpath.dirname(name), set()).add(part)
    return parts if any(len(several) > 1 for several in of_folder.values()) else None


def _names(folders: Folders, level: int) -> list[str]:
    """Return the folders of a level; "" for pictures that lie further up."""
    return sorted({parts[level] if len(parts) > level else "" for parts in folders})


def _without_repeats(folders: Folders) -> Folders:
    """Remove a folder that holds only one of its own name, which may be a part of a split."""
    inside: dict[tuple[str, ...], set[str]] = {}
    for parts in set(folders):
        for level in range(1, len(parts) + 1):
            inside.setdefault(parts[:level], set()).update(parts[level : level + 1] or ("",))
    repeated = {above for above, names in inside.items() if names == {above[-1]} and split_name(above[-1])[0]}
    if not repeated:
        return folders
    return [tuple(name for level, name in enumerate(parts) if parts[:level] not in repeated) for parts in folders]


def _check_others(folders: Folders, where: str) -> None:
    """Refuse a level on which some folders are named as parts and some are not."""
    for level in range(max(map(len, folders))):
        names = _names(folders, level)
        named = could_be_parts(names)
        if named:
            others = [name or "none at all" for name in names if name not in named]
            raise DataError(
                f"some pictures in {where} are in the folders {listed(named)} and some in {listed(others)}; give all "
                f"of them a part, rename these folders, or take all of them as classes with {CLASSES}"
                if others
                else f"the folders {listed(named)} in {where} may be parts of a split, but it cannot be told which; "
                f"call them train, val and test, or take them as classes with {CLASSES}"
            )
