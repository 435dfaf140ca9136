"""Queries and means over them, against counts done by hand."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from mmgen.core.errors import UsageError
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.queries import Frequencies, Questions, fewest_dropped, make_queries, weighted_mean
from mmgen.modalities.text import TextDescription

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


def test_no_query_leaves_out_what_the_judge_is_told() -> None:
    codes = np.array([[0, 0, 1], [2, 1, 0]], np.uint8)
    found = make_queries(codes, 1, never_dropped=(1,))
    assert sorted(found.codes.tolist()) == sorted([[255, 0, 1], [0, 0, 255], [255, 1, 0], [2, 1, 255]])


def test_many_queries_are_a_random_choice() -> None:
    codes = np.stack(np.meshgrid(*[np.arange(10, dtype=np.uint8)] * 3), -1).reshape(-1, 3)
    one, same, other = (make_queries(codes, 0, limit=50, seed=seed).codes.tolist() for seed in (0, 0, 1))
    assert len(one) == 50
    assert one == same != other
    repeated = np.repeat(codes[:5], 20, axis=0)
    assert make_queries(repeated, 0, limit=1000, captions=True).weights.tolist() == [20] * 5
    assert make_queries(repeated, 0, limit=30, captions=True).weights.sum() == 30
    assert make_queries(repeated, 0, limit=1000).weights.tolist() == [1] * 5


TEXT = TextDescription(vocabulary=("big", "red"), length=2)


@pytest.mark.parametrize(("conditional_on", "asked"), [(("text",), True), (("attributes",), False), ((), False)])
def test_a_decoder_of_captions_is_asked_by_captions_whatever_z_is_drawn_from(
    conditional_on: tuple[str, ...], asked: bool
) -> None:
    """The prior reads nothing, but the decoder does."""
    model = SimpleNamespace(conditional_on=conditional_on)
    loaded = SimpleNamespace(text=TEXT, model=model, guidance=None, description_kind=None)
    evaluation: Any = SimpleNamespace(loaded=loaded, settings=None, posteriors=("prior",), ignores_text=lambda _: True)
    questions = Questions(evaluation)
    assert questions.whole_captions is questions.free_captions is asked


@pytest.mark.parametrize(
    ("codes", "dropped", "never", "said"),
    [
        ([[0, 1], [255, 1], [1, 255]], 3, (), "got 3, expected 0 to 2"),
        ([[0, 0, 1], [2, 1, 0]], 3, (1,), "got 3, expected 0 to 2"),
        ([[0, 1, 255], [255, 255, 255]], 0, (), r"more than 2 of its 3 attributes known: .* by 3; use --given-count 2"),
        ([[255, 255, 255]], 1, (), "has a known attribute, so there is nothing to draw"),
    ],
)
def test_numbers_that_no_example_allows_are_refused(
    codes: list[list[int]], dropped: int, never: tuple[int, ...], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        make_queries(np.array(codes, np.uint8), dropped, never_dropped=never)
