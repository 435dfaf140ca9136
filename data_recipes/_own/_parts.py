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
from mmgen.data_recipes._splits import Parts, by_group

__all__ = ["check_says_no_parts", "parts_of_user", "draw_parts", "parts_of_column", "together"]

_VAL, _TEST = 0.05, 0.1
_SURE = {"split", "splits", "partition", "fold", "folds"}
_DIVISIONS = _SURE | {"set", "subset", "dataset", "usage", "phase"}
_CODES = {"0", "1", "true", "false", "yes", "no"}
_SHOWN = 5
_MOST_WORDS = 20  # different words of a column that may become an attribute


def parts_of_column(column: str, cells: Sequence[str | None], names: Sequence[str]) -> list[str]:
    """Return the part of each example [N] by a column."""
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


def check_says_no_parts(columns: Mapping[str, Sequence[str | None]]) -> None:
    """Refuse attribute columns that look like parts of a split."""
    for name, cells in columns.items():
        words = {cell for cell in cells if cell}
        if not 1 < len(words) <= _MOST_WORDS:
            continue
        parts = parts_of(words)
        example = " and ".join(sorted(words)[:_SHOWN])
        or_else = f"leave it out with --ignore {shell_quoted(name)}, or name the attributes with --attributes"
        if len({*parts.values()}) > 1 and "train" in parts.values():
            raise DataError(
                f"the column '{name}' says {example}, as a division into parts does; divide by it with --split "
                f"{shell_quoted(name)}, {or_else}"
            )
        if _is_division(name, words):
            raise DataError(
                f"the column '{name}' says {example}, which may divide into parts; write train, val and test there to "
                f"divide by it with --split {shell_quoted(name)}, {or_else}"
            )


def _is_division(name: str, words: Collection[str]) -> bool:
    """Return whether a column is named as a division, and some of its words could be parts or all are codes of them.

    Example:
        >>> _is_division("Usage", ["Training", "PublicTest"]), _is_division("partition", "012")
        (True, True)
        >>> _is_division("vehicle", ["bus", "train"]), _is_division("train", "01"), _is_division("set", ["tea"])
        (False, False, False)
    """
    called = {word.casefold() for word in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name) if word}
    if called & _DIVISIONS and any(split_name(word)[0] for word in words):
        return True
    if called & _SURE and all(map(str.isdecimal, words)):
        return True
    is_part = len(called) == 2 and called & {"is", "in"} and split_name(name)[0]
    return bool(is_part) and all(word.casefold() in _CODES for word in words)


def together(*labels: Sequence[Any]) -> NDArray[np.int64]:
    """Group examples [N] that share a label of any kind: numbers from 0, in order of appearance."""
    parent = list(range(len(labels[0])))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for kind in labels:
        first: dict[Any, int] = {}
        for row, label in enumerate(kind):
            if label is not None:
                parent[root(row)] = root(first.setdefault(label, row))
    _, groups = np.unique([root(row) for row in range(len(parent))], return_inverse=True)
    return groups.astype(np.int64)


def _shares(groups: int) -> tuple[float, float]:
    """Return shares of train and val such that val and test get a group each."""
    val, test = max(_VAL, 1 / groups), max(_TEST, 1 / groups)
    return 1 - val - test, val


def draw_parts(groups: NDArray[np.int64], seed: int) -> Parts:
    """Draw 85, 5 and 10 % of the groups, at least one group each."""
    number = int(groups.max()) + 1
    if number < 3:
        raise DataError(
            f"the pictures are in only {number} groups, of which none may be in two parts, expected at least 3; choose "
            "another column for --group, or add pictures"
        )
    train, val = _shares(number)
    return by_group(groups, number, seed, "iid", train=train, val=val)


def parts_of_user(
    parts: Sequence[str],
    named: NDArray[np.int64] | None,
    alike: NDArray[np.int64],
    groups: NDArray[np.int64],
    names: Sequence[str],
    seed: int,
) -> tuple[Parts, list[str]]:
    """Return the user's parts; missing val and test parts are drawn from train."""
    part = np.array([PARTS.index(each) for each in parts])
    notes: list[str] = []
    if not (part == 0).any():
        raise DataError(
            f"no picture is in the part train, only in {', '.join(sorted(set(parts)))}; name one part train"
        )
    first, divided = _divided(part, named) if named is not None else (part, part[:0])
    if len(divided):
        row, other = int(divided[0]), int(first[divided[0]])
        raise DataError(
            f"'{printable(names[row], 80)}' in {parts[row]} and '{printable(names[other], 80)}' in {parts[other]} are "
            f"of one group, as are {len(divided):,} in all; divide otherwise, or leave --group out"
        )
    _, doubles = _divided(part, alike)
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


def _divided(part: NDArray[np.int64], groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first example of each one's group [N], and the examples in another part than it."""
    _, starts = np.unique(groups, return_index=True)
    first = starts[groups]
    return first, np.flatnonzero(part != part[first])
