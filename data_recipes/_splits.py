"""Division of a dataset's images into train, val and test, by default 85 / 5 / 10 % as VE App. A.2."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._streams import random_order

__all__ = ["PARTS", "Parts", "official_scheme", "part_of", "split_by_group"]

PARTS = ("train", "val", "test")
_PART_OF_WORD = {**{part: part for part in PARTS}, "training": "train", "validation": "val", "testing": "test"}

Parts = dict[str, NDArray[np.int64]]
"""Row numbers, ascending, by part: train, val, test."""

_TRAIN, _VAL = 0.85, 0.05


def part_of(name: str) -> str:
    """Return the part, train, val or test, that a folder's name or a cell means; "" if none.

    Example:
        >>> [part_of(name) for name in ("Training", "VAL", "testing", "train2017", "")]
        ['train', 'val', 'test', '', '']
    """
    return _PART_OF_WORD.get(name.casefold(), "")


def split_by_group(
    groups: NDArray[Any], group_count: int, seed: int, name: str, *, train: float = _TRAIN, val: float = _VAL
) -> Parts:
    """Divide the groups 0 .. group_count - 1 at random into train, val and test, and each image with its group.

    Args:
        groups: Group of each image [N]; images of one group are never separated.
        group_count: Number of groups, with or without images.
        seed: Seed of the dataset.
        name: The scheme's name, so that schemes differ.
        train: Share of the groups.
        val: Likewise; the rest is test.
    """
    order = random_order(seed, f"split {name}", group_count)
    first, second = round(train * group_count), round((train + val) * group_count)
    part_of_group = np.empty(group_count, np.uint8)
    for code, members in enumerate((order[:first], order[first:second], order[second:])):
        part_of_group[members] = code
    part = part_of_group[groups]
    return {name: np.flatnonzero(part == code) for code, name in enumerate(("train", "val", "test"))}


def official_scheme(source: NDArray[Any], source_part: NDArray[Any], seed: int) -> dict[str, tuple[str, Parts]]:
    """Return the publisher's split as scheme "official" with its meaning; {} if images show digits of one part only.

    Args:
        source: Number of the source digit of each image [N].
        source_part: The publisher's part of each image's digit [N]: 0 training, 1 test, 2 validation.
        seed: Seed of the dataset, which chooses validation digits if the publisher has none.
    """
    if len(np.unique(source_part)) < 2:
        return {}
    if (source_part == 2).any():
        parts = {name: np.flatnonzero(source_part == code) for name, code in (("train", 0), ("val", 2), ("test", 1))}
        return {"official": ("the publisher's training, validation and test digits", parts)}
    training = np.unique(source[source_part == 0])
    chosen = training[random_order(seed, "split official", len(training))[: len(training) // 12]]
    val = np.isin(source, chosen)
    parts = {
        "train": np.flatnonzero((source_part == 0) & ~val),
        "val": np.flatnonzero(val),
        "test": np.flatnonzero(source_part == 1),
    }
    return {"official": ("the publisher's test digits; of the training digits one in twelve is val", parts)}
