"""Precision and recall of nearest neighbours where the share that overlaps is known."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mmgen.evaluation.distances import NEIGHBOURS, are_inside_balls, neighbour_distances

RANDOM = np.random.default_rng(0)


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
