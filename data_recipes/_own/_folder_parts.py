"""Folders of pictures as parts of a split or as classes."""

import posixpath
from collections.abc import Sequence

from mmgen.core.errors import DataError
from mmgen.data_recipes._own._files import list_examples
from mmgen.data_recipes._part_names import parts_of, possible_part_names, split_name

__all__ = ["CLASSES", "parts_by_folder", "parts_by_name"]

CLASSES = "--folders-are-classes"
"""The option for folders as classes."""

Folders = list[tuple[str, ...]]
"""Folders of each picture [N], outermost first."""


def parts_by_folder(folders: Folders, where: str, has_parts: bool) -> tuple[list[str] | None, Folders]:
    """Return the part of each picture [N] by its folders, None without such folders, and the remaining class folders.

    Args:
        folders: Folders of each picture [N].
        where: Description of the source, for errors.
        has_parts: Whether a column gives parts, so that folders need not.

    Raises:
        DataError: Only some folders name parts, or levels disagree.
    """
    folders = _remove_repeated_folders(folders)
    levels: dict[int, list[str]] = {}
    for level in range(max(map(len, folders))):
        names = _folder_names(folders, level)
        if parts_here := parts_of(names):
            levels[level] = [parts_here[parts[level]] for parts in folders]
    if not levels:
        if not has_parts:
            _check_level_names(folders, where)
        return None, folders
    (first, parts), *others = levels.items()
    for level, more in others:
        if more != parts:
            outer, inner = (list_examples(_folder_names(folders, one)) for one in (first, level))
            raise DataError(
                f"the folders {outer} and, in them, {inner} in {where} say different parts; rename the ones or the "
                f"others, or take all of them as classes with {CLASSES}"
            )
    if "train" not in parts and not has_parts:
        listed = list_examples(_folder_names(folders, first))
        raise DataError(
            f"no picture in {where} is in the part train, only in {listed}; call one of them train, or take folders as "
            f"classes with {CLASSES}"
        )
    return parts, [tuple(name for level, name in enumerate(each) if level not in levels) for each in folders]


def parts_by_name(names: Sequence[str]) -> list[str] | None:
    """Return the part of each picture [N] by the name of its file (train_001.png); None unless all names have one."""
    # All of them must say one, train among them, and in some folder more than one: "train stations/train 1.png" says
    # what the folder is about.
    parts = [split_name(posixpath.splitext(posixpath.basename(name))[0])[0] for name in names]
    if not all(parts) or "train" not in parts:
        return None
    of_folder: dict[str, set[str]] = {}
    for name, part in zip(names, parts, strict=True):
        of_folder.setdefault(posixpath.dirname(name), set()).add(part)
    return parts if any(len(several) > 1 for several in of_folder.values()) else None


def _folder_names(folders: Folders, level: int) -> list[str]:
    """Return the folders' names at a level; "" stands for pictures above it."""
    return sorted({parts[level] if len(parts) > level else "" for parts in folders})


def _remove_repeated_folders(folders: Folders) -> Folders:
    """Remove a folder that holds only one of its own name, which may be a part of a split."""
    inside: dict[tuple[str, ...], set[str]] = {}
    for parts in set(folders):
        for level in range(1, len(parts) + 1):
            inside.setdefault(parts[:level], set()).update(parts[level : level + 1] or ("",))
    repeated = {above for above, names in inside.items() if names == {above[-1]} and split_name(above[-1])[0]}
    if not repeated:
        return folders
    return [tuple(name for level, name in enumerate(parts) if parts[:level] not in repeated) for parts in folders]


def _check_level_names(folders: Folders, where: str) -> None:
    """Refuse a level on which some folders are named as parts and some are not."""
    for level in range(max(map(len, folders))):
        names = _folder_names(folders, level)
        named = possible_part_names(names)
        if named:
            others = [name or "none at all" for name in names if name not in named]
            raise DataError(
                f"some pictures in {where} are in the folders {list_examples(named)} and some in "
                f"{list_examples(others)}; give all of them a part, rename these folders, or take all of them as "
                f"classes with {CLASSES}"
                if others
                else f"the folders {list_examples(named)} in {where} may be parts of a split, but it cannot be told "
                f"which; call them train, val and test, or take them as classes with {CLASSES}"
            )
