"""The worst word and pair of words: a planted class is named, and its interval allows for its having been picked."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mmgen.core.notation import UNKNOWN
from mmgen.evaluation.queries import make_queries
from mmgen.metrics._worst import find_worst
from mmgen.results.standard_errors import binomial_error

SIZES = (6, 6, 2, 4)
INFO: Any = SimpleNamespace(
    names=("shape", "colour", "size", "ground"),
    values=tuple(tuple(f"{name}{value}" for value in range(size)) for name, size in zip("scbg", SIZES, strict=True)),
)
WHOLE = np.array(list(itertools.product(*map(range, SIZES))), np.uint8)
"""All 288 descriptions."""


def draw(codes: np.ndarray, share: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
    """Whether words of n pictures of each description are right [Q, n, A], as often as ``share`` [Q, A]."""
    return random.random((len(codes), n, len(SIZES))) < share[:, None]


def planted(codes: np.ndarray, right: float) -> np.ndarray:
    """Shares [Q, A]: every word right in 99.5 %, but the shape of s1 on g3 in ``right``."""
    share = np.full(codes.shape, 0.995)
    share[(codes[:, 0] == 1) & (codes[:, 3] == 3), 0] = right
    return share


def test_the_worst_by_hand() -> None:
    codes = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [1, 1, UNKNOWN, 0]], np.uint8)
    right = np.ones((3, 10, 4), np.bool_)
    right[1, :8, 0] = False  # the shape of the second description
    found = find_worst(codes, right, INFO)
    # s0 is right in 12 of 20, s0 with c1 in 2 of 10.
    assert (found["worst_word_name"], found["worst_word"]) == ("s0", pytest.approx(60.0))
    assert (found["worst_pair_name"], found["worst_pair"]) == ("s0 c1", pytest.approx(20.0))
    assert find_worst(codes[:, :1], right[..., :1], INFO).keys() == {
        "worst_word",
        "worst_word_name",
        "worst_word_stderr",
    }
    # Of one pair whose descriptions give nothing else there is nothing to pick, and pictures are independent.
    (pair,) = (find_worst(codes[:1, [0, 3]], right[1:2][..., [0, 3]], INFO),)
    assert pair["worst_pair_stderr"] == pytest.approx(binomial_error(20.0, 10), rel=1e-3)


def test_words_of_several_attributes_have_their_names() -> None:
    info: Any = SimpleNamespace(names=("left", "right"), values=(("cube", "ball"), ("cube", "cone")))
    right = np.array([[[True, True]], [[False, True]]])
    assert find_worst(np.array([[1, 0], [0, 1]]), right, info)["worst_pair_name"] == "left=cube cone"


@pytest.mark.parametrize(("queries", "given", "draws", "often"), [(120, 2, 48, 0.97), (72, 4, 8, 0.75)])
def test_a_class_of_12_of_288_is_named(queries: int, given: int, draws: int, often: float) -> None:
    """Squares on night, 42 % right where all others are 99.5: a mean of 97.8 % of all right hides them."""
    random, named = np.random.default_rng(0), []
    for seed in range(50):
        codes = make_queries(WHOLE, 4 - given, limit=queries, seed=seed).codes
        found = find_worst(codes, draw(codes, planted(codes, 0.42), draws, random), INFO)
        named.append(found["worst_pair_name"] == "s1 g3")
    assert np.mean(named) >= often


@pytest.mark.parametrize("right", [0.995, 0.42])
@pytest.mark.parametrize(("queries", "given", "draws"), [(120, 2, 48), (72, 4, 8)])
def test_the_interval_of_the_worst_holds(queries: int, given: int, draws: int, right: float) -> None:
    """As often as it says or more, where that of a pair that was not picked for being bad holds far more seldom."""
    random, inside, plain = np.random.default_rng(1), [], []
    for seed in range(50):
        codes = make_queries(WHOLE, 4 - given, limit=queries, seed=seed).codes
        found = find_worst(codes, draw(codes, planted(codes, right), draws, random), INFO)
        truth = 100 * 0.995 * (right if found["worst_pair_name"] == "s1 g3" else 0.995)
        off = abs(found["worst_pair"] - truth)
        inside.append(off <= 1.96 * found["worst_pair_stderr"])
        plain.append(off <= 1.96 * binomial_error(found["worst_pair"], draws))
    assert np.mean(inside) >= 0.95
    if (given, right) == (2, 0.995):
        assert np.mean(plain) < np.mean(inside)


def test_few_descriptions_have_every_pair_in_turn() -> None:
    """36 of 288 hold all 116 pairs, and 72 nearly all twice; as many at random leave a fifth of them out."""
    for number, times in ((36, 1), (72, 2)):
        codes = make_queries(WHOLE, 0, limit=number).codes
        assert len(codes) == number
        counts = [
            np.unique(codes[:, [a, b]], axis=0, return_counts=True)[1] for a, b in itertools.combinations(range(4), 2)
        ]
        assert sum(map(len, counts)) == 116
        assert np.mean(np.concatenate(counts) >= times) > 0.9
    codes = make_queries(WHOLE, 2, limit=116).codes
    assert len(codes) == 116, "all of them"
    assert (make_queries(WHOLE, 2, limit=30).codes != UNKNOWN).sum() == 60
    seeds = [make_queries(WHOLE, 0, limit=36, seed=seed).codes.tolist() for seed in (0, 0, 1)]
    assert seeds[0] == seeds[1] != seeds[2]
