"""The Fréchet distance against closed forms, its bias against the one that is known, its error against repetition."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from mmgen.evaluation.distances import (
    GROUPS,
    distance_within_descriptions,
    extrapolate_distance,
    frechet_distance,
    jackknife_error,
    pooled_distance,
)

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _from_the_start() -> None:
    """Each test draws the same numbers, whichever ran before it."""
    global RANDOM
    RANDOM = np.random.default_rng(0)


def covariance(size: int) -> np.ndarray:
    root = RANDOM.normal(size=(size, size))
    return root @ root.T


def test_one_dimension() -> None:
    """(m - m')^2 + (s - s')^2."""
    found = frechet_distance((1.0 - 4.0) ** 2, np.array([[4.0]]), np.array([[9.0]]))
    assert found == pytest.approx(9 + (2 - 3) ** 2)


def test_covariances_that_do_not_commute() -> None:
    """The matrix root of scipy (Schur's method), which takes another way than eigenvalues."""
    one, other = covariance(6), covariance(6)
    assert not np.allclose(one @ other, other @ one)
    expected = 2.5 + np.trace(one + other - 2 * sqrtm(one @ other).real)
    assert frechet_distance(2.5, one, other) == pytest.approx(expected)
    assert frechet_distance(2.5, other, one) == pytest.approx(expected)


def test_covariances_without_full_rank() -> None:
    """A repeated picture has none at all: the whole spread is the distance."""
    one = np.diag([4.0, 1.0, 0.0])
    assert frechet_distance(0.0, one, np.zeros((3, 3))) == pytest.approx(5.0)
    assert frechet_distance(0.0, one, one) == pytest.approx(0.0, abs=1e-12)


def gaussians(queries: int, n: int, size: int = 3, scale: float = 1.0, shift: float = 0.0) -> list[np.ndarray]:
    """Points of each description around its own mean, the same for every call."""
    means = np.random.default_rng(7).normal(size=(queries, size)) * 5
    return [mean + shift + scale * RANDOM.normal(size=(n, size)) for mean in means]


def test_distance_of_many_points_is_the_closed_form() -> None:
    """Shift 0.5 in 3 dimensions and scale 1 against 2: 3 * 0.25 + 3 * (1 - 2)^2, whatever the descriptions' means."""
    one, other = gaussians(12, 20_000), gaussians(12, 20_000, scale=2.0, shift=0.5)
    assert distance_within_descriptions(one, other, np.ones(12)).distance_without(None) == pytest.approx(3.75, abs=0.03)


def test_pooled_distance_is_that_of_all_points() -> None:
    one, other = gaussians(8, 50), gaussians(8, 40, scale=2.0)
    a, b = np.concatenate(one), np.concatenate(other)
    expected = frechet_distance(((a.mean(0) - b.mean(0)) ** 2).sum(), np.cov(a.T), np.cov(b.T))
    assert pooled_distance(one, other).distance_without(None) == pytest.approx(expected)
    missing = [np.zeros((0, 3)), *one[1:]]  # a description may have none
    c = np.concatenate(one[1:])
    expected = frechet_distance(((c.mean(0) - b.mean(0)) ** 2).sum(), np.cov(c.T), np.cov(b.T))
    assert pooled_distance(missing, other).distance_without(None) == pytest.approx(expected)


def test_pooling_forgives_what_descriptions_do_not() -> None:
    """Pictures of the wrong descriptions: the same set as a whole, far from each description."""
    one = gaussians(40, 200)
    exchanged = gaussians(40, 200)[::-1]
    assert pooled_distance(one, exchanged).distance_without(None) < 0.05
    assert distance_within_descriptions(one, exchanged, np.ones(40)).distance_without(None) > 20


def test_distance_within_is_a_lower_bound_and_exact_where_covariances_are_shared() -> None:
    def each(one: list[np.ndarray], other: list[np.ndarray]) -> float:
        parts = [
            frechet_distance(((a.mean(0) - b.mean(0)) ** 2).sum(), np.cov(a.T), np.cov(b.T))
            for a, b in zip(one, other, strict=True)
        ]
        return float(np.average(parts, weights=weights))

    weights = np.arange(1.0, 7.0)
    one = [points @ covariance(3) for points in gaussians(6, 100)]
    other = [points @ covariance(3) for points in gaussians(6, 100)]
    assert distance_within_descriptions(one, other, weights).distance_without(None) < 0.95 * each(one, other)
    shared = [one[0] + k for k in range(6)]
    others = [other[0] - k for k in range(6)]
    assert distance_within_descriptions(shared, others, weights).distance_without(None) == pytest.approx(
        each(shared, others)
    )


@pytest.mark.slow
def test_bias_falls_as_one_over_n_and_the_line_removes_it() -> None:
    """Equal Gaussians of variance 1 in F dimensions: the means alone are 2 F / n apart."""
    queries, n, size = 3000, 10, 2
    one, other = gaussians(queries, n, size), gaussians(queries, n, size)
    weights = np.ones(queries)
    whole = distance_within_descriptions(one, other, weights)
    assert whole.distance_without(None) == pytest.approx(2 * size / n, rel=0.05)
    parts = [distance_within_descriptions([a[k::2] for a in one], [b[k::2] for b in other], weights) for k in (0, 1)]
    limit = extrapolate_distance(whole, parts)
    error = jackknife_error(limit, whole.groups)
    assert whole.spacing == pytest.approx(1 / (n - 1))
    assert error is not None and error < 0.05
    # Over 30 repetitions the mean is 0.1 of these errors and the spread 1.5 here, where 3,000 descriptions share two
    # dimensions; with 100 or 300 of them, equal and not, in 2 and 16, it is 0.9 to 1.1 over 100 repetitions each.
    assert abs(limit(None)) < 5 * error


def test_line_leaves_nothing_where_few_points_make_most_of_the_distance() -> None:
    """64 dimensions, 24 points of each of 100 descriptions: a distance of 6 that is chance alone."""
    one, other = gaussians(100, 24, 64), gaussians(100, 24, 64)
    weights = np.ones(100)
    whole = distance_within_descriptions(one, other, weights)
    parts = [distance_within_descriptions([a[k::2] for a in one], [b[k::2] for b in other], weights) for k in (0, 1)]
    limit = extrapolate_distance(whole, parts)
    assert whole.bias_of_means(None) == pytest.approx(2 * 64 / 24, rel=0.02)
    assert whole.distance_without(None) > 6
    assert abs(limit(None)) < 4 * (jackknife_error(limit, whole.groups) or 0) < 0.8


def test_line_of_pooled_points() -> None:
    """The bias of 200 pooled points in 20 dimensions is near 2 F / n + F^2 / (2 n) or so; the line leaves little."""
    one, other = gaussians(20, 10, 20), gaussians(20, 10, 20)
    whole = pooled_distance(one, other)
    parts = [pooled_distance([a[k::2] for a in one], [b[k::2] for b in other]) for k in (0, 1)]
    truth = 0.0
    assert whole.distance_without(None) > 1.0
    assert abs(extrapolate_distance(whole, parts)(None) - truth) < 0.35 * whole.distance_without(None)


def test_error_is_the_spread_over_repetitions() -> None:
    """Each experiment draws its points anew; what the jackknife says on average is what happens."""
    values, errors = [], []
    for _ in range(60):
        one, other = gaussians(60, 12), gaussians(60, 12, scale=1.5, shift=0.3)
        distance = distance_within_descriptions(one, other, np.ones(60))
        values.append(distance.distance_without(None))
        errors.append(jackknife_error(distance.distance_without, distance.groups))
    assert distance.groups == GROUPS
    assert np.mean(errors) == pytest.approx(np.std(values, ddof=1), rel=0.25)


def test_one_description_has_no_error_over_descriptions() -> None:
    distance = distance_within_descriptions(gaussians(1, 20), gaussians(1, 20), np.ones(1))
    assert jackknife_error(distance.distance_without, distance.groups) is None
