"""Parts of a split: by folders, by a column, or drawn; groups stay together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError
from mmgen.core.parsing import printable
from mmgen.data_recipes._streams import PARTS, Parts, part_of, split_by_group

CLASSES = "--folders-are-classes"
"""The option for folders as classes."""

_VAL, _TEST = 0.05, 0.1
_MOST_WORDS = 20  # different words of a column that may be parts
_MOST_NAMED = 5

Folders = list[tuple[str, ...]]
"""Folders of each picture [N], outermost first."""


def _may_be_parts(names: Iterable[str]) -> bool:
    """Return whether some names hold the word train and others test or val, as train_set and test_set do."""
    held = {part for name in names for part in PARTS if part in name.casefold()}
    return "train" in held and len(held) > 1


def parts_by_folder(folders: Folders, where: str, has_parts: bool) -> tuple[list[str] | None, Folders]:
    """Return the part of each picture [N] by its folders, None without such folders, and the remaining class folders.

    Args:
        folders: Folders of each picture [N].
        where: Description of the source, for errors.
        has_parts: Whether a column gives parts, so that folders need not.

    Raises:
        DataError: Only some folders name parts, or they may.
    """
    levels = [
        {parts[level] if len(parts) > level else "" for parts in folders} for level in range(max(map(len, folders)))
    ]
    place = next((level for level, names in enumerate(levels) if all(map(part_of, names))), None)
    if place is None and has_parts:
        return None, folders
    for level, names in enumerate(levels):
        if level != place and (_may_be_parts(names) or (place is None and any(map(part_of, names)))):
            listed = ", ".join(f"'{printable(name, 40)}'" if name else "none" for name in sorted(names)[:_MOST_NAMED])
            raise DataError(
                f"pictures in {where} are in the folders {listed}, which may be parts of a split; call all "
                f"folders of one level train, val or test, and none of another, or take all as classes with {CLASSES}"
            )
    if place is None:
        return None, folders
    return [part_of(parts[place]) for parts in folders], [(*parts[:place], *parts[place + 1 :]) for parts in folders]


def parts_of_column(column: str, cells: Sequence[str | None], names: Sequence[str], advice: str) -> list[str]:
    """Convert the cells [N] of a column to the part of each example: train, val or test.

    Args:
        column: The column.
        cells: Its cells [N].
        names: Names of the examples [N], for errors.
        advice: Clause for errors on how to leave out the column.

    Raises:
        DataError: A cell is no part.
    """
    parts = [part_of(cell or "") for cell in cells]
    if "" in parts:
        row = parts.index("")
        value = f"'{printable(cells[row] or '', 40)}'" if cells[row] else "nothing"
        raise DataError(
            f"the column '{column}' has {value} for '{printable(names[row], 80)}', expected train, val or test; fix "
            f"it, or {advice}"
        )
    return parts


def check_no_part_columns(columns: Mapping[str, Sequence[str | None]]) -> None:
    """Refuse columns of attributes whose values may be parts of a split."""
    for name, cells in columns.items():
        words = {cell for cell in cells if cell}
        if len(words) <= _MOST_WORDS and _may_be_parts(words):
            raise DataError(
                f"the column '{name}' holds {' and '.join(sorted(words)[:_MOST_NAMED])}, which may be parts of a "
                "split; use it as the split with --split (of train, val and test), leave it out with --ignore, or name "
                "the attributes with --attributes"
            )


def group_by_labels(*labels: Sequence[Any]) -> NDArray[np.int64]:
    """Return a group number [N] for each example; examples that share any label are in one group."""
    parent = list(range(len(labels[0])))

    def find_root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for kind in labels:
        first: dict[Any, int] = {}
        for row, label in enumerate(kind):
            if label is not None:
                parent[find_root(row)] = find_root(first.setdefault(label, row))
    _, groups = np.unique([find_root(row) for row in range(len(parent))], return_inverse=True)
    return groups.astype(np.int64)


def _part_shares(groups: int) -> tuple[float, float]:
    """Return the shares of train and val, such that val and test get at least one of the groups each."""
    val, test = max(_VAL, 1 / groups), max(_TEST, 1 / groups)
    return 1 - val - test, val


def draw_parts(groups: NDArray[np.int64], seed: int) -> Parts:
    """Draw 85, 5 and 10 % of the groups [N] for train, val and test, at least one group each.

    Raises:
        DataError: There are fewer than three groups.
    """
    number = int(groups.max()) + 1
    if number < 3:
        raise DataError(
            f"the pictures make {number} groups, of which none may be in two parts, expected at least 3: equal "
            "pictures are one group, as those of a value of --group are; add others, or choose another --group"
        )
    train, val = _part_shares(number)
    return split_by_group(groups, number, seed, "iid", train=train, val=val)


def complete_user_parts(
    parts: Sequence[str],
    user_groups: NDArray[np.int64] | None,
    duplicates: NDArray[np.int64],
    groups: NDArray[np.int64],
    names: Sequence[str],
    seed: int,
) -> tuple[Parts, list[str]]:
    """Return the examples by part, and notes; parts val and test that the user lacks are drawn from train.

    Args:
        parts: The user's part of each example [N].
        user_groups: Groups that must not be divided [N]; None without any.
        duplicates: Groups of equal pictures [N].
        groups: Groups that stay together where parts are drawn [N].
        names: Names of the examples [N], for errors.
        seed: Seed of drawn parts.

    Raises:
        DataError: No example is in train, or a group is divided.
    """
    part = np.array([PARTS.index(each) for each in parts])
    notes: list[str] = []
    if not (part == 0).any():
        raise DataError(
            f"no picture is in the part train, only in {', '.join(sorted(set(parts)))}; name one part train"
        )
    first, divided = _find_divided_examples(part, user_groups) if user_groups is not None else (part, part[:0])
    if len(divided):
        row, other = int(divided[0]), int(first[divided[0]])
        raise DataError(
            f"'{printable(names[row], 80)}' in {parts[row]} and '{printable(names[other], 80)}' in {parts[other]} are "
            f"of one group, as are {len(divided):,} in all, and a group may be in one part only; change the parts, or "
            "leave --group out"
        )
    _, doubles = _find_divided_examples(part, duplicates)
    if len(doubles):
        notes.append(f"{len(doubles):,} pictures are in two parts, byte for byte")
    missing = [code for code in (1, 2) if not (part == code).any()]
    if missing:
        training = np.flatnonzero(part == 0)
        _, own = np.unique(groups[training], return_inverse=True)
        drawn = draw_parts(own.astype(np.int64), seed)
        for code in missing:
            part[training[drawn[PARTS[code]]]] = code
        notes.append(f"{' and '.join(PARTS[code] for code in missing)} drawn from train, where none was given")
    return {name: np.flatnonzero(part == code) for code, name in enumerate(PARTS)}, notes


def _find_divided_examples(
    part: NDArray[np.int64], groups: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first example of each example's group [N], and the examples whose part differs from its part."""
    _, starts = np.unique(groups, return_index=True)
    first = starts[groups]
    return first, np.flatnonzero(part != part[first])
