"""Division of a dataset's images into train, val and test, by default 85 / 5 / 10 % as VE App. A.2."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._streams import shuffled

__all__ = ["Parts", "by_group", "official"]

Parts = dict[str, NDArray[np.int64]]
"""Row numbers, ascending, by part: train, val, test."""

_TRAIN, _VAL = 0.85, 0.05


def by_group(
    groups: NDArray[Any], n_groups: int, seed: int, name: str, *, train: float = _TRAIN, val: float = _VAL
) -> Parts:
    """Divide the groups 0 .. n_groups - 1 at random; an image goes where its group goes.

    Args:
        groups: Group of each image [N]; images of one group are never separated.
        n_groups: Number of groups that are divided, whether or not all of them have images.
        seed: Seed of the dataset.
        name: The scheme's name, so that schemes differ.
        train: Share of the groups.
        val: Likewise; the rest is test.
    """
    order = shuffled(seed, f"split {name}", n_groups)
    first, second = round(train * n_groups), round((train + val) * n_groups)
    part_of_group = np.empty(n_groups, np.uint8)
    for code, members in enumerate((order[:first], order[first:second], order[second:])):
        part_of_group[members] = code
    part = part_of_group[groups]
    return {name: np.flatnonzero(part == code) for code, name in enumerate(("train", "val", "test"))}


def official(source: NDArray[Any], source_part: NDArray[Any], seed: int) -> dict[str, tuple[str, Parts]]:
    """Return the scheme "official" with its meaning; none where the images hold digits of only one of the publisher's
    parts.
    """
    if len(np.unique(source_part)) < 2:
        return {}
    if (source_part == 2).any():
        parts = {name: np.flatnonzero(source_part == code) for name, code in (("train", 0), ("val", 2), ("test", 1))}
        return {"official": ("the publisher's training, validation and test digits", parts)}
    training = np.unique(source[source_part == 0])
    chosen = training[shuffled(seed, "split official", len(training))[: len(training) // 12]]
    val = np.isin(source, chosen)
    parts = {
        "train": np.flatnonzero((source_part == 0) & ~val),
        "val": np.flatnonzero(val),
        "test": np.flatnonzero(source_part == 1),
    }
    return {"official": ("the publisher's test digits; of the training digits one in twelve is val", parts)}
