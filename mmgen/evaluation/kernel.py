r"""Kernel distance between two sets of points: the unbiased estimate of their squared maximum mean discrepancy.

.. math:: E[k(x, x')] + E[k(y, y')] - 2 E[k(x, y)], \quad k(x, y) = (x \cdot y / F + 1)^3

It compares the first three moments. Unlike the Fréchet distance it has no bias that depends on the number of points,
and may be below 0 by chance.

References:
    A Kernel Two-Sample Test (Gretton, Borgwardt, Rasch, Schölkopf, Smola, 2012), Eq. 3
    Demystifying MMD GANs (Bińkowski, Sutherland, Arbel, Gretton, 2018), arXiv:1801.01401, Section 4
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mmgen.evaluation.frechet import assign_groups

__all__ = ["kernel_distance", "pooled_kernel_distance"]

_ROWS = 1024

Floats = NDArray[np.float64]


def _kernel(points: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
    """Compute the kernel k(x, y) [n, m] for every pair of points [n, F] and others [m, F]."""
    left, right = points.astype(np.float64), others.astype(np.float64)
    kernel: Floats = (left @ right.T / left.shape[1] + 1) ** 3
    return kernel


def kernel_distance(points: NDArray[np.floating], others: NDArray[np.floating]) -> float:
    """Compute the unbiased squared kernel distance (MMD) of two sets of at least two points [n, F] and [m, F].

    Example:
        >>> kernel_distance(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
        -19.0
    """
    own = [_mean_of_pairs(_kernel(side, side)) for side in (points, others)]
    return float(sum(own) - 2 * _kernel(points, others).mean())


def _mean_of_pairs(kernel: Floats) -> float:
    """Return the mean of a kernel matrix [n, n] without its diagonal."""
    count = len(kernel)
    return float((kernel.sum() - np.trace(kernel)) / (count * (count - 1)))


def pooled_kernel_distance(
    first: Sequence[NDArray[np.floating]], second: Sequence[NDArray[np.floating]]
) -> tuple[Callable[[int | None], float], int]:
    """Return a function for the squared kernel distance of all points, and the number of groups it can leave out.

    The distance is a function of the group to leave out, None for no group.

    Args:
        first: Points [n, F] of each description; n may be 0.
        second: The same of the other set.
    """
    groups = assign_groups(len(first))
    number = int(groups.max()) + 1
    sides = [(np.concatenate(side), np.repeat(groups, list(map(len, side)))) for side in (first, second)]
    counts = [np.bincount(labels, minlength=number).astype(np.float64) for _, labels in sides]
    own = [_sums_by_groups(*side, *side, number) for side in sides]
    diagonal = [_diagonal_sums(*side, number) for side in sides]
    between = _sums_by_groups(*sides[0], *sides[1], number)

    def distance(left_out: int | None) -> float:
        kept = np.arange(number) != left_out
        n, m = (count[kept].sum() for count in counts)
        pairs = [
            (sums[kept][:, kept].sum() - alone[kept].sum()) / (size * (size - 1))
            for sums, alone, size in zip(own, diagonal, (n, m), strict=True)
        ]
        return float(sum(pairs) - 2 * between[kept][:, kept].sum() / (n * m))

    return distance, number


def _sums_by_groups(
    points: NDArray[np.floating],
    labels: NDArray[np.int64],
    others: NDArray[np.floating],
    other_labels: NDArray[np.int64],
    number: int,
) -> Floats:
    """Sum the kernel over pairs of groups, [G, G]."""
    sums = np.zeros((number, number))
    columns = np.eye(number)[other_labels]
    for start in range(0, len(points), _ROWS):
        rows = slice(start, start + _ROWS)
        np.add.at(sums, labels[rows], _kernel(points[rows], others) @ columns)
    return sums


def _diagonal_sums(points: NDArray[np.floating], labels: NDArray[np.int64], number: int) -> Floats:
    """Sum k(x, x) over each group, [G]."""
    squares = np.einsum("ij,ij->i", points, points, dtype=np.float64)
    sums: Floats = np.bincount(labels, (squares / points.shape[1] + 1) ** 3, number).astype(np.float64)
    return sums
