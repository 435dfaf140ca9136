r"""Distances between sets of points: Fréchet, kernel (maximum mean discrepancy), and balls to nearest neighbours.

From n points of each of two equal Gaussians the distance is not 0 but about proportional to 1/n, so two numbers compare
only at equal n. What the means contribute is known, Tr(C)/n + Tr(C')/n; what the covariances do is removed by following
the line through the values of n points and of n/2 to infinitely many.

References:
    The Fréchet distance between multivariate normal distributions (Dowson, Landau, 1982), Journal of Multivariate
    Analysis 12;
    GANs Trained by a Two Time-Scale Update Rule Converge to a Local Nash Equilibrium (Heusel, Ramsauer, Unterthiner,
    Nessler, Hochreiter, 2017), arXiv:1706.08500, Eq. 6;
    Effectively Unbiased FID and Inception Score and Where to Find Them (Chong, Forsyth, 2020), arXiv:1911.07023,
    Section 3

.. math:: E[k(x, x')] + E[k(y, y')] - 2 E[k(x, y)], \quad k(x, y) = (x \cdot y / F + 1)^3

It compares the first three moments. Unlike the Fréchet distance it has no bias that depends on the number of points,
and may be below 0 by chance.

References:
    A Kernel Two-Sample Test (Gretton, Borgwardt, Rasch, Schölkopf, Smola, 2012), Eq. 3
    Demystifying MMD GANs (Bińkowski, Sutherland, Arbel, Gretton, 2018), arXiv:1801.01401, Section 4

References:
    Improved Precision and Recall Metric for Assessing Generative Models (Kynkäänniemi, Karras, Laine, Lehtinen, Aila,
    2019), arXiv:1904.06991, Eq. 1
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mmgen.core.seeding import numpy_generator

GROUPS = 20
"""Groups of descriptions that the jackknife leaves out in turn."""

Floats = NDArray[np.float64]


def frechet_distance(difference: float, first: Floats, second: Floats) -> float:
    r"""Compute the squared Fréchet distance of two Gaussians from the difference of means and both covariances.

    .. math:: \|m - m'\|^2 + Tr(C + C' - 2 (C C')^{1/2})

    Args:
        difference: Squared distance of the means.
        first: Covariance [F, F].
        second: Covariance [F, F].

    Example:
        >>> frechet_distance(1.0, 4 * np.eye(3), np.eye(3))
        4.0
    """
    values, vectors = np.linalg.eigh(first)
    root = vectors * np.sqrt(np.clip(values, 0, None))  # C = root root', and C C' has the eigenvalues of root' C' root
    mixed = np.linalg.eigvalsh(root.T @ second @ root)
    return float(difference + np.trace(first) + np.trace(second) - 2 * np.sqrt(np.clip(mixed, 0, None)).sum())


@dataclass(frozen=True)
class Distance:
    """A Fréchet distance between two sets of points; functions recompute it without a group of descriptions.

    Attributes:
        distance_without: Function from a group of descriptions to the squared distance without it; None for all groups.
        bias_of_means: Function from a group, or None, to the bias of the squared distance of means without it.
        groups: Number of groups.
        spacing: 1/(n - 1), to which the remaining bias is proportional.
    """

    distance_without: Callable[[int | None], float]
    bias_of_means: Callable[[int | None], float]
    groups: int
    spacing: float


def assign_groups(queries: int) -> NDArray[np.int64]:
    """Assign each of ``queries`` descriptions to a random group; a jackknife leaves groups out."""
    return numpy_generator(0, "groups of descriptions").permutation(np.arange(queries) % min(GROUPS, queries))


def _sum_by_group(parts: Sequence[NDArray[np.floating]], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sums [G, ...] of the arrays in ``parts`` that belong to each group."""
    totals = np.zeros((int(groups.max()) + 1, *parts[0].shape))
    for group, part in zip(groups, parts, strict=True):
        totals[group] += part
    return totals


def distance_within_descriptions(points: Sequence[Floats], others: Sequence[Floats], weights: Floats) -> Distance:
    """Compute the Fréchet distance of points with equal descriptions, from mean covariances over descriptions.

    It is at most the mean over descriptions of their own Fréchet distances, since -Tr (C C')^(1/2) is jointly convex
    (the fidelity of quantum states is jointly concave), and equal to it where covariances do not depend on the
    description; but it needs few points of each.

    Args:
        points: Points [n, F] of each description, n > 1.
        others: The same of the other set.
        weights: Weight of each description [Q].
    """
    groups = assign_groups(len(weights))
    apart = [w * ((a.mean(0) - b.mean(0)) ** 2).sum() for a, b, w in zip(points, others, weights, strict=True)]
    means, mass = np.bincount(groups, apart), np.bincount(groups, weights)
    spreads = [_sum_covariances(points, weights, groups) for points in (points, others)]
    chance = np.bincount(
        groups,
        [
            w * sum(part.var(0, ddof=1).sum() / len(part) for part in both)
            for *both, w in zip(points, others, weights, strict=True)
        ],
    )

    @cache
    def distance_without(left_out: int | None) -> float:
        kept = np.arange(len(mass)) != left_out
        total = mass[kept].sum()
        return frechet_distance(means[kept].sum() / total, *(part[kept].sum(0) / total for part in spreads))

    def bias_of_means(left_out: int | None) -> float:
        kept = np.arange(len(mass)) != left_out
        return float(chance[kept].sum() / mass[kept].sum())

    nth = [(1 / (len(a) - 1) + 1 / (len(b) - 1)) / 2 for a, b in zip(points, others, strict=True)]
    return Distance(distance_without, bias_of_means, len(mass), float(np.average(nth, weights=weights)))


def _sum_covariances(points: Sequence[Floats], weights: Floats, groups: NDArray[np.int64]) -> Floats:
    """Return the weighted sums [G, F, F] of the covariances of each group's descriptions."""
    size = points[0].shape[1]
    totals = np.zeros((int(groups.max()) + 1, size, size))
    for part, weight, group in zip(points, weights, groups, strict=True):
        centred = part - part.mean(0)
        totals[group] += weight * (centred.T @ centred) / (len(part) - 1)
    return totals


def pooled_distance(first: Sequence[Floats], second: Sequence[Floats]) -> Distance:
    """Compute the Fréchet distance of all points, whatever their description, as FID is usually measured.

    Args:
        first: Points [n, F] of each description; n may be 0.
        second: The same of the other set.
    """
    groups = assign_groups(len(first))
    counts, sums, squares = [], [], []
    for points in (first, second):
        counts.append(np.bincount(groups, list(map(len, points))))
        sums.append(_sum_by_group([part.sum(0) for part in points], groups))
        squares.append(np.stack([_sum_squares(points, groups == group) for group in range(len(counts[0]))]))

    def moments_without(left_out: int | None) -> list[tuple[float, Floats, Floats]]:
        """Return number, mean and covariance of both sets."""
        kept = np.arange(len(counts[0])) != left_out
        found = []
        for count, total, square in zip(counts, sums, squares, strict=True):
            n = count[kept].sum()
            mean = total[kept].sum(0) / n
            found.append((n, mean, (square[kept].sum(0) - n * np.outer(mean, mean)) / (n - 1)))
        return found

    @cache
    def distance_without(left_out: int | None) -> float:
        (_, mean, spread), (_, other_mean, other_spread) = moments_without(left_out)
        return frechet_distance(float(((mean - other_mean) ** 2).sum()), spread, other_spread)

    def bias_of_means(left_out: int | None) -> float:
        return float(sum(np.trace(spread) / n for n, _, spread in moments_without(left_out)))

    n, m = (count.sum() for count in counts)
    return Distance(distance_without, bias_of_means, len(counts[0]), float((1 / (n - 1) + 1 / (m - 1)) / 2))


def _sum_squares(points: Sequence[Floats], chosen: NDArray[np.bool_]) -> Floats:
    """Return the sum of squared norms of the points of chosen descriptions."""
    joined = np.concatenate([part for part, wanted in zip(points, chosen, strict=True) if wanted])
    return joined.T @ joined


def extrapolate_distance(whole: Distance, halves: Sequence[Distance]) -> Callable[[int | None], float]:
    """Extrapolate a distance to infinitely many points, linearly in 1 / n, from its values on all and half of them.

    Args:
        whole: Estimate from all points.
        halves: Estimates from either half of the points.
    """
    spacing = float(np.mean([half.spacing for half in halves]))
    step = whole.spacing / (spacing - whole.spacing)

    def extrapolated(left_out: int | None) -> float:
        fewer = float(np.mean([half.distance_without(left_out) - half.bias_of_means(left_out) for half in halves]))
        all_of_them = whole.distance_without(left_out) - whole.bias_of_means(left_out)
        return all_of_them - step * (fewer - all_of_them)

    return extrapolated


def jackknife_error(estimate: Callable[[int | None], float], groups: int) -> float | None:
    """Return the standard error of ``estimate`` by leaving out each group of descriptions; None for one group."""
    if groups < 2:
        return None
    left_out = np.array([estimate(group) for group in range(groups)])
    return float(np.sqrt((groups - 1) * left_out.var()))


_ROWS = 1024


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


NEIGHBOURS = 3
"""k, as in the paper's experiments."""

_ROUNDING = 1e-10
"""Squared distances below this share of the squared norms are rounding errors of equal points."""


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
