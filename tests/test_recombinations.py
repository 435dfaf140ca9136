"""Descriptions made of others: what they mean, how they read, and what is refused."""

import numpy as np
import pytest

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions.queries import OPERATORS, format_query, parse_query
from mmgen.descriptions.recombinations import is_recombination, parse_recombination
from tests.test_queries import MNIST_A

MEANT = {
    "digit=3 AND scale=big": "digit=3 scale=big",
    "digit=3 scale=big AND scale=big location=top-left": "digit=3 scale=big location=top-left",
    "(digit=3 scale=big) IN COMMON (digit=3 scale=small)": "digit=3",
    "digit=3 IN COMMON digit=5": "anything",
    "digit=3 scale=big IGNORE scale=big": "digit=3",
    "digit=3 AND scale=big AND orientation=upright": "digit=3 scale=big orientation=upright",
    "((digit=3 AND scale=big) IGNORE digit=3) AND location=top-left": "scale=big location=top-left",
    "digit='3' AND scale=\"big\"": "digit=3 scale=big",
}


@pytest.mark.parametrize("text", MEANT)
def test_each_means_a_plain_description(text: str) -> None:
    made = parse_recombination(text, MNIST_A)
    assert made.plain == MEANT[text]
    assert (made.codes == parse_query(MEANT[text], MNIST_A)).all()
    again = parse_recombination(str(made), MNIST_A)
    assert (str(again), again.key) == (str(made), made.key), "as typed, so read"
    assert made.operators <= set(OPERATORS)
    assert made.holds(np.where(made.codes == UNKNOWN, 0, made.codes))
    assert is_recombination(text) and not is_recombination(MEANT[text])


def test_leaves_stand_from_left_to_right() -> None:
    made = parse_recombination("(digit=3 AND scale=big) IN COMMON (digit=3 IGNORE digit=3)", MNIST_A)
    assert [format_query(codes, MNIST_A) for codes in made.leaves] == ["digit=3", "scale=big", "digit=3", "digit=3"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("digit=3 AND digit=5", "two values of 'digit'"),
        ("digit=3 IGNORE scale=big", "which digit=3 does not say"),
        ("digit=3 scale=big IGNORE scale=small", "does not say"),
        ("digit=3 AND", "nothing on one side"),
        ("AND digit=3", "nothing on one side"),
        ("digit=3 AND scale=big IGNORE digit=3", "side by side"),
        ("(digit=3 AND scale=big", "never closed"),
        ("digit=3 AND scale=big)", "never opened"),
        ("(digit=3) scale=big AND digit=3", "right after a parenthesis"),
        ("digit=3 (scale=big) AND digit=3", "before a parenthesis"),
        ("digit=3 AND NOT scale=big", "one or the other"),
        ("digit=3 AND scale=huge", "no value 'huge'"),
        ("digit=3 AND size=big", "size"),
        (" AND ".join(["digit=3"] * 1500), "joins 1,500 parts, expected at most 50"),
        ("(digit=3 OR digit=5)", "has OR beside parentheses, expected one or the other"),
        ("digit=3 (scale=big)", "no operator before a parenthesis"),
        ("(" * 30 + "digit=3" + ")" * 30 + " AND scale=big", "inside each other"),
    ],
)
def test_what_is_refused_is_said(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_recombination(text, MNIST_A)


@pytest.mark.parametrize("text", ["digit=3 and scale=big", "digit=3 IN scale=big", "digit=3 ignore scale=big"])
def test_words_that_join_are_whole_and_in_capitals(text: str) -> None:
    assert not is_recombination(text)
    with pytest.raises(UsageError, match="description has"):
        parse_query(text, MNIST_A)


@pytest.mark.parametrize(("text", "operator"), [("digit=3 in scale=big", "IN COMMON"), ("digit=3 Ignore x", "IGNORE")])
def test_operators_are_named_in_full(text: str, operator: str) -> None:
    with pytest.raises(UsageError, match=f"or {operator} in capitals between descriptions"):
        parse_query(text, MNIST_A)


def test_parentheses_alone_join_nothing() -> None:
    assert is_recombination("(digit=3)") and not is_recombination("digit=3 scale=big")
    made = parse_recombination("(digit=3 scale=big)", MNIST_A)
    assert (str(made), made.operators) == ("digit=3 scale=big", frozenset())
