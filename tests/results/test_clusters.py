"""Errors of examples that come in clusters: by hand, by simulation, and in what is compared."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mmgen.results.groups import contrast, group_runs, paired_difference
from mmgen.results.score import ExampleValues, Score
from mmgen.results.standard_errors import add_clustered_error, clustered_error


def score(values: Any, **changed: Any) -> Score:
    made = Score("log-likelihood", "log p(x)", float(np.mean(values)), 0.1, "nats", "higher", len(values), "image")
    return replace(made, points=ExampleValues([float(one) for one in values]), **changed)


def test_singletons_have_the_usual_error_and_weights_the_ratio_estimators() -> None:
    values, weights = np.random.default_rng(0).normal(size=(2, 9))
    assert clustered_error(values) == pytest.approx(stats.sem(values))
    assert clustered_error(values, np.arange(9)[::-1]) == pytest.approx(stats.sem(values))
    weights = np.abs(weights)
    off = weights * (values - np.average(values, weights=weights))
    expected = np.sqrt(9 / 8 * (off**2).sum()) / weights.sum()
    assert clustered_error(values, weights=weights) == pytest.approx(expected)


def test_equal_clusters_have_the_error_of_their_means() -> None:
    values, clusters = np.random.default_rng(0).normal(size=40), np.repeat([7, 3, 9, 1, 2], 8)
    assert clustered_error(values, clusters) == pytest.approx(stats.sem(values.reshape(5, 8).mean(1)))


def test_unequal_clusters_have_the_error_of_the_jackknife() -> None:
    """With clusters of very unequal sizes the mean follows the largest ones: 95 % intervals of sums hold 87 %."""
    rng, held = np.random.default_rng(0), []
    for _ in range(600):
        clusters = np.repeat(np.arange(5), rng.geometric(0.03, size=5))
        values = rng.normal(size=5)[clusters] + rng.normal(size=len(clusters))
        without = np.array([values[clusters != one].mean() for one in range(5)])
        error = clustered_error(values, clusters)
        assert error == pytest.approx(np.sqrt(4 / 5 * np.square(without - values.mean()).sum()))
        held.append(abs(values.mean()) < stats.t.ppf(0.975, 4) * error)
    assert np.mean(held) > 0.895
    assert np.isnan(clustered_error([1.0, 2.0, 3.0], [0, 0, 1], [1.0, 1.0, 0.0])), "one cluster has all the weight"


def test_the_error_is_how_much_means_of_other_pictures_differ() -> None:
    """20 pictures of 5 to 50 patches, of which those of one share most: plain errors are three times too small."""
    rng, means, errors, plain = np.random.default_rng(0), [], [], []
    for _ in range(400):
        sizes = rng.integers(5, 51, size=20)
        values = np.repeat(rng.normal(size=20), sizes) + 0.5 * rng.normal(size=sizes.sum())
        found = score(values)
        told = add_clustered_error(found, np.repeat(np.arange(20), sizes)).stderr
        assert told is not None
        means.append(found.value)
        errors.append(told)
        plain.append(stats.sem(values))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means), rel=0.1)
    assert np.mean(plain) < np.std(means) / 3


def test_scores_change_only_where_points_share_a_picture() -> None:
    values = [1.0, 1.0, 3.0, 3.0]
    alone, shared = np.arange(4), np.array([5, 5, 2, 2])
    plain = score(values)
    assert add_clustered_error(plain, None) is plain and add_clustered_error(plain, alone) is plain
    assert add_clustered_error(plain, np.array([0, 0, 1])) is plain, "not of these points"
    found = add_clustered_error(plain, shared)
    assert (found.stderr, found.points.clusters, found.points.units) == (1.0, [1, 1, 0, 0], 2)
    bits = add_clustered_error(replace(plain, details={"bits_per_pixel_stderr": 0.2}), shared)
    assert bits.details["bits_per_pixel_stderr"] == pytest.approx(2.0), "ten times the error, so ten times this one"
    assert add_clustered_error(plain, np.zeros(4)).stderr is None, "of one picture nothing says how much others differ"
    percent = add_clustered_error(score([100.0] * 4, unit="%"), shared)
    assert percent.stderr is not None and percent.stderr > 10, "shares have no error of 0"


def test_differences_are_clustered_too() -> None:
    pictures = np.repeat(np.arange(6), 10)
    rng = np.random.default_rng(0)
    base = rng.normal(size=60)
    first, last = base, base + np.repeat(rng.normal(size=6), 10)
    a, b = (add_clustered_error(score(values), pictures) for values in (first, last))
    points = paired_difference(a, b)
    assert points is not None
    by_picture = (last - first).reshape(6, 10).mean(1)
    assert points[1] == pytest.approx(stats.sem(by_picture))
    found, expected = contrast(group_runs([b]), group_runs([a])), stats.ttest_1samp(by_picture, 0).confidence_interval()
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert paired_difference(a, replace(b, points=replace(b.points, clusters=[0] * 60))) is None


@pytest.mark.parametrize("clusters", [[1, 2], [0] * 4])
def test_clusters_that_a_file_makes_up_are_no_pairs(clusters: Any) -> None:
    a, b = (score(values, stderr=1.0) for values in ([1.0, 2.0, 3.0, 4.0], [2.0, 3.5, 4.0, 6.0]))
    a, b = (replace(one, points=replace(one.points, clusters=clusters)) for one in (a, b))
    assert paired_difference(a, b) is None
    assert contrast(group_runs([b]), group_runs([a])).over == "examples"
