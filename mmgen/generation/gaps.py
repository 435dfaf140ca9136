"""Combinations of attributes' values that no picture of a dataset has: the gaps of a grid, which a model can draw."""

import math
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator

__all__ = ["Gaps", "find_gaps"]

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
