"""Choice of concepts to draw: very different ones, and one with its attributes dropped one by one (VE Fig. 1, 4b).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762
"""

from collections.abc import Sequence

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator

__all__ = ["choose_concepts", "abstraction_levels"]


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
