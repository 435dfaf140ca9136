"""Distances of features against closed forms: Fréchet, by a kernel, and shares of nearest neighbours."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import sqrtm
from scipy.spatial.distance import cdist

from mmgen.evaluation.distances import (
    GROUPS,
    NEIGHBOURS,
    are_inside_balls,
    distance_within_descriptions,
    extrapolate_distance,
    frechet_distance,
    jackknife_error,
    kernel_distance,
    neighbour_distances,
    pooled_distance,
    pooled_kernel_distance,
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


Floats = NDArray[np.float64]


def exact_kernel(moments: Floats, others: Floats) -> float:
    """In one dimension (x y + 1)^3 = sum_r C(3, r) x^r y^r."""
    return float((np.array([3, 3, 1]) * (moments - others) ** 2).sum())


def gaussian_moments(mean: float, sd: float) -> Floats:
    return np.array([mean, mean**2 + sd**2, mean**3 + 3 * mean * sd**2])


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (0.5, 1.0), (0.0, 1.6)])
def test_it_is_unbiased_for_any_number_of_points(mean: float, sd: float) -> None:
    generator = np.random.default_rng(0)
    expected = exact_kernel(gaussian_moments(0, 1), gaussian_moments(mean, sd))
    for n, m in ((2, 3), (12, 7)):
        values = [
            kernel_distance(generator.normal(0, 1, (n, 1)), generator.normal(mean, sd, (m, 1))) for _ in range(2_000)
        ]
        assert np.mean(values) == pytest.approx(expected, abs=4 * np.std(values) / np.sqrt(len(values)))


@pytest.mark.slow
def test_many_points_come_near_the_closed_form() -> None:
    generator = np.random.default_rng(1)
    expected = exact_kernel(gaussian_moments(0, 1), gaussian_moments(0.5, 1.2))
    found = kernel_distance(generator.normal(0, 1, (3_000, 1)), generator.normal(0.5, 1.2, (3_000, 1)))
    assert found == pytest.approx(expected, rel=0.3)


def test_pooled_points_are_one_set_and_a_group_can_be_left_out() -> None:
    generator = np.random.default_rng(2)
    first, second = ([generator.normal(shift, 1, (size, 3)) for size in (4, 0, 5, 7)] for shift in (0.0, 0.3))
    distance, groups = pooled_kernel_distance(first, second)
    assert groups == 4
    assert distance(None) == pytest.approx(kernel_distance(np.concatenate(first), np.concatenate(second)))
    without = {
        round(kernel_distance(*(np.concatenate([*side[:left], *side[left + 1 :]]) for side in (first, second))), 9)
        for left in range(4)
    }
    assert {round(distance(group), 9) for group in range(4)} == without
    assert (jackknife_error(distance, groups) or 0) > 0


@pytest.mark.slow
def test_the_standard_error_is_that_of_repeats() -> None:
    generator = np.random.default_rng(3)
    values, errors = [], []
    for _ in range(100):
        first, second = ([generator.normal(shift, 1, (6, 1)) for _ in range(40)] for shift in (0.0, 0.6))
        distance, groups = pooled_kernel_distance(first, second)
        values.append(distance(None))
        errors.append(jackknife_error(distance, groups))
    assert np.sqrt(np.mean(np.square(np.array(errors, float)))) == pytest.approx(np.std(values), rel=0.35)


def square(n: int, left: float = 0.0) -> np.ndarray:
    """Uniform points of the square [left, left + 1] x [0, 1]."""
    return RANDOM.random((n, 2)) + np.array([left, 0.0])


def both(real: np.ndarray, drawn: np.ndarray) -> tuple[float, float]:
    """Precision and recall."""
    return float(are_inside_balls(drawn, real).mean()), float(are_inside_balls(real, drawn).mean())


def test_agrees_with_the_definition_point_by_point() -> None:
    """Kynkäänniemi et al., Eq. 1, written out with exact distances; more points than are compared at a time."""
    real, drawn = RANDOM.normal(size=(90, 5)), RANDOM.normal(size=(1100, 5))
    far = np.sort(cdist(real, real), axis=1)[:, NEIGHBOURS]
    expected = (cdist(drawn, real) <= far).any(1)
    np.testing.assert_array_equal(are_inside_balls(drawn, real), expected)
    np.testing.assert_allclose(np.sqrt(neighbour_distances(real)), far)
    assert 0.2 < expected.mean() < 0.98  # else anything would agree


@pytest.mark.parametrize("shift", [0.25, 0.5, 0.8])
def test_squares_that_overlap(shift: float) -> None:
    """1 - shift of the moved square lies in the other; balls of 3 among 2,000 points reach about 0.02 beyond it."""
    n = 2000
    precision, recall = both(square(n), square(n, shift))
    border = np.sqrt(NEIGHBOURS / (np.pi * n))
    # Of points inside some lie in no ball: each ball holds k points, so few; P is measured by the identical squares.
    missed = 1 - both(square(n), square(n))[0]
    for share in (precision, recall):
        assert share == pytest.approx((1 - shift) * (1 - missed) + border / 2, abs=0.03)


def test_equal_sets_overlap_wholly_and_far_ones_not() -> None:
    points = square(200)
    assert both(points, points.copy()) == (1.0, 1.0)
    assert both(points, points + 5) == (0.0, 0.0)


def test_a_repeated_picture_is_precise_and_recalls_nothing() -> None:
    real = square(500)
    assert both(real, np.tile([[0.5, 0.5]], (100, 1))) == (1.0, 0.0)
    # Also where it is one of the real ones: no more than that one is recalled.
    assert both(real, np.tile(real[:1], (100, 1))) == (1.0, 1 / 500)


def test_large_offsets_do_not_blur_equal_points() -> None:
    """Features far from the origin: distances by norms and products would lose the last digits."""
    real = square(300) * 1e-3 + 1e3
    assert both(real, np.tile(real[:1], (50, 1))) == (1.0, 1 / 300)


def test_dropped_modes_cost_recall_only() -> None:
    centres = np.array([[0.0, 0], [10, 0], [0, 10], [10, 10]])

    def clusters(of: int) -> np.ndarray:
        return centres[np.arange(2000) % of] + RANDOM.normal(size=(2000, 2))

    real, ceiling = clusters(4), both(clusters(4), clusters(4))
    precision, recall = both(real, clusters(2))
    assert precision == pytest.approx(ceiling[0], abs=0.03)
    assert recall == pytest.approx(ceiling[1] / 2, abs=0.03)


@pytest.mark.slow
def test_invented_modes_cost_precision_only() -> None:
    real = square(2000)
    precision, recall = both(real, np.concatenate([square(2000), square(2000, 7.0)]))
    assert precision == pytest.approx(both(real, square(2000))[0] / 2, abs=0.03)
    assert recall > 0.95
