"""The tree of a parsed description."""

from dataclasses import dataclass

import numpy as np

from mmgen.core.notation import UNKNOWN

__all__ = ["Expression"]


@dataclass(frozen=True, eq=False)
class Expression:
    """A parsed description by attributes: a tree of conditions ``name=value``, joined by operators such as AND and NOT.

    A leaf allows a product of sets of values, one set for each attribute: a box.

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
        """Return bool [...]: True where the attribute codes uint8 [..., A] fit the description.

        An unknown value fits where any would.
        """
        each, known = np.arange(codes.shape[-1]), codes != UNKNOWN
        found = [np.where(known, box[each, np.where(known, codes, 0)], box.all(1)).all(-1) for box in self.boxes]
        return np.asarray(np.stack(found).any(0))
