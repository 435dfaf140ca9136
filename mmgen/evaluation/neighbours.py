"""Share of one set of points that lies where another set does, by balls to the k-th nearest neighbour.

References:
    Improved Precision and Recall Metric for Assessing Generative Models (Kynkäänniemi, Karras, Laine, Lehtinen, Aila,
    2019), arXiv:1904.06991, Eq. 1
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["NEIGHBOURS", "are_inside_balls", "neighbour_distances"]

NEIGHBOURS = 3
"""k, as in the paper's experiments."""

_ROWS = 1024
_ROUNDING = 1e-10
"""Squared distances below this share of the squared norms are rounding errors of equal points."""

Floats = NDArray[np.float64]


def _squared_distances(points: NDArray[np.floating], others: NDArray[np.floating]) -> Iterator[Floats]:
    """Yield squared Euclidean distances [n', m] from some of ``points`` to all ``others``."""
    # About a common origin, in fp64: |a|^2 + |b|^2 - 2 a b loses what the norms exceed the distance by.
    origin = others.mean(0, dtype=np.float64)
    right = others - origin
    norms = np.einsum("ij,ij->i", right, right)
    for start in range(0, len(points), _ROWS):
        left = points[start : start + _ROWS] - origin
        sums = np.einsum("ij,ij->i", left, left)[:, None] + norms
        found: Floats = np.maximum(-2 * (left @ right.T) + sums, 0)
        found[found < _ROUNDING * sums] = 0.0
        yield found


def neighbour_distances(points: NDArray[np.floating], k: int = NEIGHBOURS) -> Floats:
    """Return the squared distance [n] from each point to its k-th nearest other point.

    Args:
        points: [n, F], n > k.
        k: Which neighbour.
    """
    assert len(points) > k, f"{len(points)} points have no {k} neighbours each"
    # Every point is its own nearest, at distance 0.
    return np.concatenate([np.partition(rows, k, axis=1)[:, k] for rows in _squared_distances(points, points)])


def are_inside_balls(
    points: NDArray[np.floating], others: NDArray[np.floating], k: int = NEIGHBOURS
) -> NDArray[np.bool_]:
    """Return bool [n]: True for points that are as near to one of ``others`` as its k-th nearest neighbour.

    The mean is the precision of ``points`` against ``others``, and the recall of ``others`` against ``points``.

    Args:
        points: [n, F].
        others: [m, F], m > k.
        k: Which neighbour.

    Example:
        >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> are_inside_balls(np.array([[0.5, 0.5], [3.0, 0.0]]), square, 2)
        array([ True, False])
    """
    far = neighbour_distances(others, k)
    return np.concatenate([(rows <= far).any(1) for rows in _squared_distances(points, others)])
