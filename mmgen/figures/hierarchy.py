"""The abstraction hierarchy: one concept, its attributes dropped one by one (VE Fig. 1 and 4b).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762
"""

from collections.abc import Sequence

import numpy as np

from mmgen.errors import UsageError
from mmgen.figures.draws import Draws
from mmgen.figures.grids import Grid, Panel, image_table
from mmgen.notation import UNKNOWN
from mmgen.queries import Vocabulary, format_query

__all__ = ["hierarchy", "hierarchy_queries", "share_right"]


def hierarchy_queries(codes: np.ndarray, order: Sequence[int] | None = None) -> np.ndarray:
    """A concept and its ancestors, from the most abstract to the concept itself.

    Args:
        codes: uint8 [A], the concept; attributes that it leaves unknown stay so.
        order: Positions of the attributes in the order in which they are dropped; by default the first goes first.

    Returns:
        uint8 [L + 1, A], where L attributes are known: row 0 knows none, each next row one more (VE Fig. 4b: "starting
        from abstract (top) to refined (bottom)").

    Raises:
        UsageError: ``order`` does not name exactly the known attributes.

    Example:
        >>> hierarchy_queries(np.array([3, 0, 1], np.uint8)).tolist()
        [[255, 255, 255], [255, 255, 1], [255, 0, 1], [3, 0, 1]]
    """
    known = [position for position, code in enumerate(codes) if code != UNKNOWN]
    dropping = known if order is None else list(order)
    if sorted(dropping) != known:
        raise UsageError(f"order of dropping got {dropping}, expected each of the known attributes {known} once")
    levels = [np.array(codes, np.uint8)]
    for position in dropping:
        level = levels[-1].copy()
        level[position] = UNKNOWN
        levels.append(level)
    return np.stack(levels[::-1])


def share_right(draws: Draws) -> str:
    """The judge's verdict over all images of ``draws``, as a sentence; "" without a judge."""
    right, asked = draws.right
    what = "descriptions" if any(draws.expressions) else "attributes"
    return f"{100 * right / asked:.1f} % of {asked:,} {what} right" if asked else ""


def hierarchy(draws: Sequence[tuple[str, Draws]], info: Vocabulary, *, title: str = "", note: str = "") -> Grid:
    """One row for each level of abstraction, one block for each model or posterior.

    Args:
        draws: Names and images; all of the same levels, from :func:`hierarchy_queries`.
        info: The attributes' words.
        title: What the picture shows.
        note: How it was made.
    """
    panels = [Panel(name, drawn.means, drawn.wrong, share_right(drawn)) for name, drawn in draws]
    labels = [format_query(row, info) for row in draws[0][1].asked]
    return image_table(panels, labels, title=title, note=note)
