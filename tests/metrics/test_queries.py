"""Queries and means over them, against counts done by hand."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import t as student

from mmgen.core.errors import UsageError
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.queries import Frequencies, fewest_dropped, make_queries, weighted_mean

MNIST_A = np.array(list(product(range(10), range(2), range(3), range(4))), np.uint8)


@pytest.mark.parametrize(
    ("dropped", "count"),
    [
        (0, 240),
        (1, 24 + 120 + 80 + 60),
        (2, 10 * 2 + 10 * 3 + 10 * 4 + 2 * 3 + 2 * 4 + 3 * 4),
        (3, 10 + 2 + 3 + 4),
        (4, 1),
    ],
)
def test_every_concept_with_attributes_dropped(dropped: int, count: int) -> None:
    found = make_queries(np.repeat(MNIST_A, 2, axis=0), dropped)
    assert len(found) == count
    assert ((found.codes == 255).sum(1) == dropped).all()
    assert found.given_count == 4 - dropped


def test_every_choice_of_dropped_attributes_weighs_the_same() -> None:
    found = make_queries(MNIST_A, 1)
    for attribute in range(4):
        assert found.weights[found.codes[:, attribute] == 255].sum() == 240


def test_examples_with_unknown_attributes_are_no_concepts() -> None:
    codes = np.array([[0, 1], [255, 1], [1, 255]], np.uint8)
    assert make_queries(codes, 0).codes.tolist() == [[0, 1]]
    assert make_queries(codes, 1).codes.tolist() == [[0, 255], [255, 1]]
    with pytest.raises(UsageError, match="got 3, expected 0 to 2"):
        make_queries(codes, 3)


def test_where_no_example_is_known_whole_what_is_known_of_each_is_asked_for() -> None:
    codes = np.array([[0, 1, 255], [0, 1, 255], [0, 255, 255], [255, 1, 2], [255, 255, 255]], np.uint8)
    found = make_queries(codes, 1)
    assert (found.codes.tolist(), found.weights.tolist()) == ([[0, 1, 255], [255, 1, 2]], [1, 1])
    # By hand, with one given: 0 of two concepts, 1 of two, 2 of one; nothing else may be given.
    found = make_queries(codes, 2)
    assert found.codes.tolist() == [[0, 255, 255], [255, 1, 255], [255, 255, 2]]
    assert found.weights.tolist() == [2, 2, 1]
    assert make_queries(codes, 1, never_dropped=[2]).codes.tolist() == [[255, 1, 2]]
    assert [fewest_dropped(codes, always_given) for always_given in ((), [0, 2], [2])] == [1, 3, 1]
    with pytest.raises(UsageError, match=r"more than 2 of its 3 attributes known: .* by 3; use --given-count 2"):
        make_queries(codes, 0)
    with pytest.raises(UsageError, match="has a known attribute, so there is nothing to draw"):
        make_queries(codes[4:], 1)


def test_frequencies_are_conditional_on_what_is_given() -> None:
    codes = np.array([[0, 0], [0, 0], [1, 0], [2, 1], [255, 1]], np.uint8)
    known = Frequencies(codes, (3, 2))
    distribution, matched = known.conditional(0, np.array([255, 0], np.uint8))
    assert matched
    np.testing.assert_allclose(distribution, [2 / 3, 1 / 3, 0])
    distribution, matched = known.conditional(1, np.array([255, 255], np.uint8))
    assert matched
    np.testing.assert_allclose(distribution, [0.6, 0.4])
    # Never seen together: falls back on the marginal, and says so.
    distribution, matched = Frequencies(codes[:3], (3, 2)).conditional(0, np.array([255, 1], np.uint8))
    assert not matched
    np.testing.assert_allclose(distribution, [2 / 3, 1 / 3, 0])


def test_mean_over_queries_with_equal_weights_is_the_textbook_one() -> None:
    values = np.random.default_rng(0).normal(50, 10, 240)
    mean = weighted_mean(values, np.ones(240), seed=0)
    assert mean.value == pytest.approx(values.mean())
    assert mean.stderr == pytest.approx(values.std(ddof=1) / np.sqrt(240) * student.ppf(0.975, 239) / 1.96)
    parts = np.array_split(numpy_generator(0, "query splits").permutation(240), 5)
    assert mean.splits_sd == pytest.approx(np.std([values[part].mean() for part in parts], ddof=1))


def test_mean_of_one_query_has_no_error() -> None:
    mean = weighted_mean(np.array([50.0]), np.ones(1), seed=0)
    assert (mean.value, mean.stderr, mean.splits_sd) == (50.0, None, None)


def test_standard_error_covers_the_truth() -> None:
    random = np.random.default_rng(1)
    weights = random.integers(1, 10, 100).astype(float)
    errors = []
    for _ in range(400):
        mean = weighted_mean(random.normal(0, 1, 100), weights, seed=0)
        assert mean.stderr is not None
        errors.append(mean.value / mean.stderr)
    assert np.std(errors) == pytest.approx(1, abs=0.1)
