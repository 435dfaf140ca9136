"""Choice of concepts to draw: very different ones, and one with its attributes dropped one by one (VE Fig. 1, 4b).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator


def choose_concepts(attributes: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Choose combinations of attribute values (concepts) that together show as many different values as possible.

    Args:
        attributes: Codes uint8 [N, A] of examples; only those with the most known attributes can be chosen.
        count: Number of concepts; fewer are returned if fewer distinct ones exist.
        seed: Seed that breaks ties.

    Returns:
        uint8 [count, A], distinct, each with as many attributes known as any example has.

    Raises:
        UsageError: No example has a known attribute.
    """
    known = (attributes != UNKNOWN).sum(1)
    most = known.max(initial=0)
    if not most:
        raise UsageError(
            "no example has a known attribute, so there is no concept to draw; use a dataset with attributes"
        )
    concepts = np.unique(attributes[known == most], axis=0)
    concepts = concepts[numpy_generator(seed, "concepts").permutation(len(concepts))]
    chosen: list[np.ndarray] = []
    each = np.arange(concepts.shape[1])
    used = np.arange(UNKNOWN + 1) == np.full((concepts.shape[1], 1), UNKNOWN)  # "unknown" is no value to show
    while len(chosen) < count and len(concepts):
        fresh = (~used[each, concepts]).sum(1)
        best = int(np.argmax(fresh))
        # Every value has been shown: start over, so that later concepts differ from each other as well.
        if not fresh[best]:
            used[:, :UNKNOWN] = False
        chosen.append(concepts[best])
        used[each, concepts[best]] = True
        concepts = np.delete(concepts, best, axis=0)
    return np.stack(chosen)


def abstraction_levels(codes: np.ndarray, dropping_order: Sequence[int] | None = None) -> np.ndarray:
    """Return a concept with its attributes dropped one by one, the row with no attribute first, the full concept last.

    Args:
        codes: The concept, uint8 [A]; unknown attributes stay unknown.
        dropping_order: Positions of the known attributes in the order of dropping; by default from first to last.

    Returns:
        uint8 [L + 1, A], where L attributes are known: row 0 knows none, each next row one more (VE Fig. 4b: "starting
        from abstract (top) to refined (bottom)").

    Raises:
        UsageError: ``dropping_order`` does not name exactly the known attributes.

    Example:
        >>> abstraction_levels(np.array([3, 0, 1], np.uint8)).tolist()
        [[255, 255, 255], [255, 255, 1], [255, 0, 1], [3, 0, 1]]
    """
    known = [position for position, code in enumerate(codes) if code != UNKNOWN]
    dropping = known if dropping_order is None else list(dropping_order)
    if sorted(dropping) != known:
        raise UsageError(f"dropping_order got {dropping}, expected each of the known attributes {known} once")
    levels = [np.array(codes, np.uint8)]
    for position in dropping:
        level = levels[-1].copy()
        level[position] = UNKNOWN
        levels.append(level)
    return np.stack(levels[::-1])


_WHOLE = 600
"""Combinations of all attributes at most; with more of them pairs of attributes are looked at."""


@dataclass(frozen=True)
class Gaps:
    """Combinations that no picture has.

    Attributes:
        codes: Descriptions uint8 [G, A], ``UNKNOWN`` where an attribute is no part of the combination.
        possible: Number of all combinations of values that pictures have.
    """

    codes: NDArray[np.uint8]
    possible: int

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def sentence(self) -> str:
        """Return a sentence on their number: "27 of 180 combinations have no picture"; "" without any."""
        if not len(self):
            return ""
        is_whole = not (self.codes == UNKNOWN).any()
        return f"{len(self):,} of {self.possible:,} combinations{'' if is_whole else ' of two words'} have no picture"

    def choose(self, count: int, seed: int) -> NDArray[np.uint8]:
        """Return at most ``count`` of them [n, A], such that each value occurs about equally often."""
        left = [*numpy_generator(seed, "gaps").permutation(len(self))]
        used: dict[tuple[int, int], int] = {}
        chosen: list[NDArray[np.uint8]] = []
        while left and len(chosen) < count:
            worn = [sum(used.get(value, 0) for value in _values_of(self.codes[place])) for place in left]
            code = self.codes[left.pop(int(np.argmin(worn)))]
            chosen.append(code)
            for value in _values_of(code):
                used[value] = used.get(value, 0) + 1
        return np.array(chosen, np.uint8).reshape(-1, self.codes.shape[1])


def find_gaps(codes: NDArray[np.uint8]) -> Gaps:
    """Find the combinations of all attributes that no example has, or of two attributes where all are too many.

    Values that no example has are no part of a combination. Where most combinations are missing there is no grid, and
    nothing is a gap of it.

    Args:
        codes: Attribute codes uint8 [N, A]; an unknown value has no combination.

    Example:
        >>> gaps = find_gaps(np.array([[0, 0], [0, 1], [1, 1]], np.uint8))
        >>> gaps.codes.tolist(), gaps.sentence
        ([[1, 0]], '1 of 4 combinations have no picture')
    """
    values = [np.unique(column[column != UNKNOWN]).tolist() for column in codes.T]
    number = len(values)
    is_few = number == 2 or math.prod(map(len, values)) <= _WHOLE
    choices = [tuple(range(number))] if is_few else list(combinations(range(number), 2))
    missing, possible = [], 0
    for chosen in choices if number > 1 else []:
        part = codes[:, chosen]
        there = set(map(tuple, part[(part != UNKNOWN).all(1)].tolist()))
        for words in product(*(values[attribute] for attribute in chosen)):
            possible += 1
            if words not in there:
                missing.append(np.full(number, UNKNOWN, np.uint8))
                missing[-1][list(chosen)] = words
    if 2 * len(missing) > possible:
        missing = []
    return Gaps(np.array(missing, np.uint8).reshape(-1, number), possible)


def _values_of(code: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """Return the attributes and values of a description."""
    return [(attribute, int(value)) for attribute, value in enumerate(code) if value != UNKNOWN]
