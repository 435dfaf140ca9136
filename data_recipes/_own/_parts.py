"""Parts of a split: by the user's folders or column, or drawn; groups stay together."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError
from mmgen.core.parsing import printable
from mmgen.data_recipes._own._files import shell_quoted
from mmgen.data_recipes._part_names import PARTS, part_of, parts_of, split_name
from mmgen.data_recipes._splits import Parts, split_by_group

__all__ = ["check_no_part_columns", "complete_user_parts", "draw_parts", "parts_of_column", "group_by_labels"]

_VAL, _TEST = 0.05, 0.1
_PART_COLUMN_NAMES = {"split", "splits", "partition", "fold", "folds"}
_DIVISIONS = _PART_COLUMN_NAMES | {"set", "subset", "dataset", "usage", "phase"}
_CODES = {"0", "1", "true", "false", "yes", "no"}
_MOST_NAMED = 5
_MOST_WORDS = 20  # different words of a column that may become an attribute


def parts_of_column(column: str, cells: Sequence[str | None], names: Sequence[str]) -> list[str]:
    """Convert the cells [N] of a column to the part of each example: train, val or test.

    Raises:
        DataError: A cell is no part.
    """
    known = parts_of({cell or "" for cell in cells})
    parts = [known.get(cell or "") or part_of(cell or "") for cell in cells]
    wrong = next((row for row, part in enumerate(parts) if not part), None)
    if wrong is not None:
        cell = cells[wrong]
        value = f"'{printable(cell, 40)}'" if cell else "nothing"
        raise DataError(
            f"the column '{column}' has {value} for '{printable(names[wrong], 80)}', expected train, val or test; fix "
            f"it, or leave it out with --ignore {shell_quoted(column)}"
        )
    return parts


def check_no_part_columns(columns: Mapping[str, Sequence[str | None]]) -> None:
    """Refuse columns of attributes whose values look like parts of a split."""
    for name, cells in columns.items():
        words = {cell for cell in cells if cell}
        if not 1 < len(words) <= _MOST_WORDS:
            continue
        parts = parts_of(words)
        example = " and ".join(sorted(words)[:_MOST_NAMED])
        or_else = f"leave it out with --ignore {shell_quoted(name)}, or name the attributes with --attributes"
        if len({*parts.values()}) > 1 and "train" in parts.values():
            raise DataError(
                f"the column '{name}' holds {example}, which are parts of a split; use it as the split with --split "
                f"{shell_quoted(name)}, {or_else}"
            )
        if _could_name_parts(name, words):
            raise DataError(
                f"the column '{name}' holds {example}, which may be parts of a split; write train, val and test there "
                f"to use it as the split with --split {shell_quoted(name)}, {or_else}"
            )


def _could_name_parts(name: str, words: Collection[str]) -> bool:
    """Return whether a column may hold parts of a split, by its name and by words or codes in it.

    Example:
        >>> _could_name_parts("Usage", ["Training", "PublicTest"]), _could_name_parts("partition", "012")
        (True, True)
        >>> cases = [("vehicle", ["bus", "train"]), ("train", "01"), ("set", ["tea"])]
        >>> tuple(_could_name_parts(*case) for case in cases)
        (False, False, False)
    """
    name_words = {word.casefold() for word in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name) if word}
    if name_words & _DIVISIONS and any(split_name(word)[0] for word in words):
        return True
    if name_words & _PART_COLUMN_NAMES and all(map(str.isdecimal, words)):
        return True
    is_part = len(name_words) == 2 and name_words & {"is", "in"} and split_name(name)[0]
    return bool(is_part) and all(word.casefold() in _CODES for word in words)


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
            f"the pictures are in only {number} groups, of which none may be in two parts, expected at least 3; choose "
            "another column for --group, or add pictures"
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
