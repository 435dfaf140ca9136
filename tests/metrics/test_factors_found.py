"""Which dimension follows which factor, on codes where that is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from mmgen.core.progress import run_generator
from mmgen.evaluation.factors import Code, chance_information, leading_dimensions, relative_information
from mmgen.metrics.factors_found import FactorsFound
from tests.metrics.test_disentanglement import NAMES, code


@pytest.mark.parametrize(("kind", "found"), [("perfect", 4), ("permuted", 4), ("noise", 0)])
def test_perfect_permuted_noise(kind: str, found: int) -> None:
    values = FactorsFound().measure(code(kind, 2000), np.random.default_rng(0)).values
    assert values["factors found"] == found
    assert len(values) == 1 + 4


def test_rotated() -> None:
    """Turned so that every dimension holds a quarter of every factor, none is found; turned at random, fewer are."""
    perfect = code("perfect", 2000)
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    scaled = perfect.means[:, :4] / perfect.means[:, :4].std(0)
    evenly = Code(scaled @ signs, perfect.factors, perfect.names)
    assert FactorsFound().measure(evenly, np.random.default_rng(0)).values["factors found"] == 0
    assert FactorsFound().measure(code("rotated", 2000), np.random.default_rng(0)).values["factors found"] == 2


def test_each_dimension_of_a_permuted_code_follows_its_factor() -> None:
    permuted = code("permuted", 2000)
    each = leading_dimensions(relative_information(permuted), NAMES)
    assert [one.dimension for one in each] == [2, 4, 1, 3]
    assert all(one.has_own_dimension and one.information > 0.98 for one in each)


def test_what_noise_says_of_factors_is_what_chance_is() -> None:
    noise = code("noise", 2000)
    found = relative_information(noise)
    filled = np.array([[len(np.histogram(column, 20)[0].nonzero()[0]) for column in noise.means.T]]).T
    assert found.mean(0) == pytest.approx(chance_information(noise) * (filled.mean() - 1) / 19, rel=0.3)
    assert (found - chance_information(noise) < 0.03).all()


def test_a_dimension_of_two_factors_is_its_own_of_one_at_most() -> None:
    """One dimension holds both bits, the second none: it says all of either, and neither is found."""
    one, other = np.arange(400) % 2, np.arange(400) // 2 % 2
    means = np.stack([one + 2.0 * other, np.random.default_rng(0).normal(size=400)], 1)
    found = leading_dimensions(relative_information(Code(means, np.stack([one, other], 1), ("a", "b"))), ("a", "b"))
    assert [follower.dimension for follower in found] == [0, 0]
    assert [follower.information for follower in found] == pytest.approx([1, 1])
    assert not any(follower.has_own_dimension for follower in found)


def test_two_dimensions_of_one_factor_leave_no_gap() -> None:
    values = np.arange(400) % 4
    both = Code(np.stack([values, -values], 1).astype(float), np.stack([values, values // 2], 1), ("a", "b"))
    found = leading_dimensions(relative_information(both), ("a", "b"))
    assert found[0].gap == pytest.approx(0, abs=1e-9) and not found[0].has_own_dimension


def test_a_dimension_that_hardly_varies_finds_nothing() -> None:
    """Its mean follows a factor, but between two examples it moves less than any draw of z does."""
    perfect = code("perfect", 1000)
    faint = Code(perfect.means * np.array([0.01, 1, 1, 1, 1]), perfect.factors, perfect.names)
    assert FactorsFound().measure(faint, np.random.default_rng(0)).values["factors found"] == 3


def test_scores_say_each_factor() -> None:
    evaluation = SimpleNamespace(
        encodings=code("permuted", 1000),
        settings=SimpleNamespace(seed=3),
        loaded=SimpleNamespace(observation=SimpleNamespace(name="image")),
        content_ids={},
    )
    count, *each = run_generator(FactorsFound()(evaluation, "prior"))
    assert (count.value, count.unit, count.details["factors_in_all"]) == (4, "factors", 4)
    assert count.details["found_factors"] == list(NAMES)
    assert [score.quantity for score in each] == [f"information on {name}" for name in NAMES]
    assert [score.details["dimension"] for score in each] == [3, 5, 2, 4]
    assert all(score.details["found"] == 1 and score.unit == "of 1" for score in each)
