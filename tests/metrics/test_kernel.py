"""The kernel distance against its closed form: differences of the first three moments."""

import numpy as np
import pytest
from numpy.typing import NDArray

from mmgen.evaluation.distances import jackknife_error, kernel_distance, pooled_kernel_distance

Floats = NDArray[np.float64]


def exact(moments: Floats, others: Floats) -> float:
    """In one dimension (x y + 1)^3 = sum_r C(3, r) x^r y^r."""
    return float((np.array([3, 3, 1]) * (moments - others) ** 2).sum())


def gaussian_moments(mean: float, sd: float) -> Floats:
    return np.array([mean, mean**2 + sd**2, mean**3 + 3 * mean * sd**2])


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (0.5, 1.0), (0.0, 1.6)])
def test_it_is_unbiased_for_any_number_of_points(mean: float, sd: float) -> None:
    generator = np.random.default_rng(0)
    expected = exact(gaussian_moments(0, 1), gaussian_moments(mean, sd))
    for n, m in ((2, 3), (12, 7)):
        values = [
            kernel_distance(generator.normal(0, 1, (n, 1)), generator.normal(mean, sd, (m, 1))) for _ in range(2_000)
        ]
        assert np.mean(values) == pytest.approx(expected, abs=4 * np.std(values) / np.sqrt(len(values)))


@pytest.mark.slow
def test_many_points_come_near_the_closed_form() -> None:
    generator = np.random.default_rng(1)
    expected = exact(gaussian_moments(0, 1), gaussian_moments(0.5, 1.2))
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
