"""Correctness beside constant answers, and over the words that captions say."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import named_attributes
from mmgen.evaluation.queries import Queries
from mmgen.metrics.correctness import Correctness, _compare_with_constant

WORDS = ("bald", "hat", "old", "Female")
NAMES = ("Hat", "Bald", "Male")


def evaluation(names: tuple[str, ...] = NAMES) -> Any:
    return SimpleNamespace(
        loaded=SimpleNamespace(text=SimpleNamespace(vocabulary=WORDS), sharpener=None),
        attributes=SimpleNamespace(
            name="words", names=names, sizes=(2,) * len(names), values=(("no", "yes"),) * len(names)
        ),
        dataset=SimpleNamespace(read_attributes=lambda name, rows: np.zeros((len(rows), len(names)), np.uint8)),
        real_pictures=SimpleNamespace(read_rows=np.arange(4), predicted=np.zeros((4, len(names)), np.uint8)),
        questions=SimpleNamespace(hints=()),
        settings=SimpleNamespace(seed=0),
        drawn_pictures=SimpleNamespace(pixels="mean"),
        judge=None,
        content_ids={},
    )


def vocabularies(names: tuple[str, ...]) -> tuple[Any, Any]:
    asked = evaluation(names)
    return asked.loaded.text, asked.attributes


def test_a_constant_answer_and_balanced_shares() -> None:
    """Hat in one of ten, bald in two of ten; pictures never have a hat and are always read rightly otherwise."""
    codes = np.zeros((10, 2), np.uint8)
    codes[0, 0] = codes[1:3, 1] = 1
    predicted = codes[:, None].repeat(3, 1)
    predicted[:, :, 0] = 0
    found = _compare_with_constant(codes, predicted, np.ones(10), (2, 2))
    assert found["commonest"] == pytest.approx(100 * (0.9 + 0.8) / 2)
    assert found["balanced"] == pytest.approx(100 * ((1 + 0) / 2 + 1) / 2)
    even = np.arange(10, dtype=np.uint8)[:, None] % 2
    assert _compare_with_constant(even, even[:, None], np.ones(10), (2,)) == {}, "values are equally common"


def test_unknown_codes_and_weights_count_as_they_should() -> None:
    codes = np.array([[0], [1], [UNKNOWN], [0]], np.uint8)
    codes = codes[[0, 1, 3]]
    predicted = np.array([[[0]], [[0]], [[1]]], np.uint8)
    found = _compare_with_constant(codes, predicted, np.array([6.0, 1.0, 3.0]), (2,))
    assert found["commonest"] == pytest.approx(90)
    assert found["balanced"] == pytest.approx(100 * (6 / 9 + 0) / 2)


def test_words_that_are_names_say_their_attribute() -> None:
    tokens = np.array([[0, 1, 4], [3, 4, 4], [1, 3, 4]], np.uint16)
    said = named_attributes(tokens, *vocabularies(NAMES))
    assert said.tolist() == [[True, True, False], [False, False, False], [True, False, False]]
    assert not named_attributes(tokens, *vocabularies(("colour", "size", "hat"))).any(), "one name is chance"


def test_words_said_are_scored_by_themselves() -> None:
    """Three captions; hat is seen in every picture, bald in none. The second caption names nothing and is left out."""
    tokens = np.array([[0, 1, 4], [3, 4, 4], [1, 3, 4]], np.uint16)
    codes = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 0]], np.uint8)
    queries = Queries(codes, np.ones(3), 0, tokens)
    predicted = np.tile(np.array([1, 0, 0], np.uint8), (3, 4, 1))
    scores = {score.protocol: score for score in Correctness().score_codes(evaluation(), "own", queries, predicted)}
    assert scores.keys() == {"free-captions", "caption-words"}
    assert scores["free-captions"].value == pytest.approx(100 * (1 / 3 + 2 / 3 + 1) / 3)
    said = scores["caption-words"]
    assert (said.value, said.details["queries"]) == (pytest.approx(75), 2)
    assert said.by_attribute == {"Hat": 100.0, "Bald": 0.0}
    assert "commonest" not in said.details, "all words that are said are true"


def test_pictures_that_show_every_word() -> None:
    """Two queries of three words, two pictures each: one of four pictures has all of its words."""
    codes = np.array([[1, 0, 1], [0, 1, 1]], np.uint8)
    predicted = np.array([[[1, 0, 1], [1, 0, 0]], [[0, 1, 0], [1, 1, 1]]], np.uint8)
    queries = Queries(codes, np.array([1.0, 3.0]), 3, None)
    (score,) = Correctness().score_codes(evaluation(), "own", queries, predicted)
    assert score.value == pytest.approx(100 * (5 / 6 + 3 * 4 / 6) / 4)
    assert score.details["all_right"] == pytest.approx(100 * (0.5 + 3 * 0.0) / 4)
    alone = Queries(np.array([[UNKNOWN, 1, UNKNOWN]], np.uint8), np.ones(1), 1, None)
    assert "all_right" not in Correctness().score_codes(evaluation(), "own", alone, predicted[:1])[0].details
