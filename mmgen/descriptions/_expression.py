"""The tree of a parsed description."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions._vocabulary import OR

__all__ = ["Expression"]

_MOST_BOXES = 4096
"""Disjoint boxes that a union of alternatives may fall into."""


@dataclass(frozen=True, eq=False)
class Expression:
    """A parsed description by attributes: a tree of conditions ``name=value``, joined by operators such as AND and NOT.

    Attributes are independent given z. A leaf allows a product of sets of values, one set for each attribute: a box.

    Attributes:
        words: The description as a person would type it; it is parsed into the same tree.
        codes: uint8 [A], the values that it gives and a posterior can be conditioned on; ``UNKNOWN`` elsewhere, and
            everywhere for alternatives.
        meaning: The plain description of ``codes``.
        boxes: Boxes whose union is described, bool [A, V] each; True beyond an attribute's own values.
        operator: OR, AND, IN COMMON or IGNORE between operands, NOT of a leaf that excludes values, else "".
        operands: Descriptions that the operator joins; empty for a leaf.
    """

    words: str
    codes: np.ndarray
    meaning: str
    boxes: tuple[np.ndarray, ...]
    operator: str = ""
    operands: tuple["Expression", ...] = ()

    def __str__(self) -> str:
        return self.words

    @property
    def operators(self) -> frozenset[str]:
        """Names of all operators in the description."""
        return frozenset([self.operator] if self.operator else []).union(*(each.operators for each in self.operands))

    @property
    def leaf_codes(self) -> list[np.ndarray]:
        """Attribute codes [A] of the descriptions without operands, from left to right."""
        return [leaf for each in self.operands for leaf in each.leaf_codes] if self.operands else [self.codes]

    @property
    def key(self) -> tuple[int | str, ...]:
        """Words of the description, by which its random numbers are seeded."""
        return tuple(self.words.split())

    @property
    def restricted_attributes(self) -> np.ndarray:
        """Bool [A], True for each attribute whose value the description restricts."""
        restricted = [~box.all(1) for box in self.boxes]
        return np.asarray(np.stack([self.codes != UNKNOWN, *restricted]).any(0))

    def matches(self, codes: np.ndarray) -> np.ndarray:
        """Return bool [...]: True where the attribute codes uint8 [..., A] fit the description."""
        each = np.arange(codes.shape[-1])
        return np.asarray(np.stack([box[each, codes].all(-1) for box in self.boxes]).any(0))

    @cached_property
    def disjoint_boxes(self) -> np.ndarray:
        """Sets of allowed values, bool [P, A, V], that do not overlap, so that their probabilities can be added.

        Raises:
            UsageError: There are too many.
        """
        disjoint: list[np.ndarray] = []
        for box in self.boxes:
            fresh = [box]
            for known in disjoint:
                fresh = [part for whole in fresh for part in _subtract_box(whole, known)]
            disjoint += fresh
            if len(disjoint) > _MOST_BOXES:
                raise UsageError(
                    f"a description with {len(self.boxes)} alternatives falls into more than {_MOST_BOXES:,} parts; "
                    f"join fewer by {OR}"
                )
        return np.stack(disjoint)


def _subtract_box(box: np.ndarray, other: np.ndarray) -> list[np.ndarray]:
    """Split the values of ``box`` [A, V] that are not in ``other`` into boxes that do not overlap."""
    parts, rest = [], box.copy()
    for attribute in range(len(box)):
        outside = rest[attribute] & ~other[attribute]
        if outside.any():
            part = rest.copy()
            part[attribute] = outside
            parts.append(part)
        rest[attribute] &= other[attribute]
        if not rest[attribute].any():
            break
    return parts
