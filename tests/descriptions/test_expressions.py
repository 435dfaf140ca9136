"""Descriptions with operators: their meaning, their words, and refusals."""

import itertools

import numpy as np
import pytest

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import OPERATORS, format_query, parse
from tests.descriptions.test_words import MNIST_A, Words

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
    made = parse(text, MNIST_A)
    assert made.meaning == MEANT[text]
    assert (made.codes == parse(MEANT[text], MNIST_A).codes).all()
    again = parse(str(made), MNIST_A)
    assert (str(again), again.key) == (str(made), made.key), "as typed, so read"
    assert made.operators and made.operators <= set(OPERATORS)
    assert made.matches(np.where(made.codes == UNKNOWN, 0, made.codes))
    assert not parse(MEANT[text], MNIST_A).operators


def test_leaves_stand_from_left_to_right() -> None:
    made = parse("(digit=3 AND scale=big) IN COMMON (digit=3 IGNORE digit=3)", MNIST_A)
    assert [format_query(codes, MNIST_A) for codes in made.leaf_codes] == ["digit=3", "scale=big", "digit=3", "digit=3"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("digit=3 AND digit=5", "two values of 'digit'"),
        ("digit=3 IGNORE scale=big", "has scale=big after IGNORE, expected a part of digit=3"),
        ("digit=3 scale=big IGNORE scale=small", "has scale=small after IGNORE, expected a part of"),
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
        parse(text, MNIST_A)


NEGATED = {
    "digit=3 NOT scale=big": "digit=3 NOT scale=big",
    "NOT scale=big NOT digit=0, NOT scale='big'": "NOT scale=big NOT digit=0",
    "NOT digit=3 OR scale=small,digit=3": "NOT digit=3 OR digit=3 scale=small",
    "digit=3 OR digit=5 OR anything": "digit=3 OR digit=5 OR anything",
}


@pytest.mark.parametrize("text", NEGATED)
def test_negation_and_alternatives_are_sets_of_values(text: str) -> None:
    made = parse(text, MNIST_A)
    assert str(made) == NEGATED[text] == str(parse(NEGATED[text], MNIST_A))
    assert made.operators and made.operators <= {"NOT", "OR"}
    every = np.array(list(itertools.product(range(10), range(2), range(3), range(4))), np.uint8)
    held = [any(all(box[k, code] for k, code in enumerate(codes)) for box in made.boxes) for codes in every]
    assert (np.array(held) == made.matches(every)).all()
    unknown = np.array([[255, 0, 0, 0], [3, 255, 0, 0]], np.uint8)  # fits only where any value would
    assert made.matches(unknown).tolist() == [
        all(bool(made.matches(np.array([digit, 0, 0, 0], np.uint8))) for digit in range(10)),
        all(bool(made.matches(np.array([3, scale, 0, 0], np.uint8))) for scale in range(2)),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("digit=3 OR", "nothing on one side"),
        ("OR digit=3", "nothing on one side"),
        ("digit=3 NOT", "NOT without attribute=value"),
        ("NOT NOT digit=3", "NOT without attribute=value"),
        ("NOT scale=*", "expected a value"),
        ("NOT scale=big NOT scale=small", "leaves no value of 'scale'"),
        ("digit=3 NOT digit=3", "leaves no value of 'digit'"),
        ("digit=3 digit=5 OR scale=big", "gives 'digit' twice, as '3' and '5'"),
        ("NOT digit=12", "no value '12'"),
    ],
)
def test_impossible_negations_and_alternatives_are_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse(text, MNIST_A)


SIGNS = Words(("kind", "size"), (("f(x)", ":)", "(none)", "f(", "AND"), ("big", "small")))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("kind=f(x) AND kind='f(x)'", [0, 0]),
        ("(kind=f(x)) AND size=big", [0, UNKNOWN]),
        ("(kind=(none))IGNORE(kind=(none))", [2, 2]),
        ("kind=':)' AND kind=:\\)", [1, 1]),
        ("kind='f(' AND kind='AND'", None),
    ],
)
def test_parentheses_inside_a_value_belong_to_it(text: str, kinds: list[int] | None) -> None:
    if kinds is None:
        with pytest.raises(UsageError, match="two values of 'kind'"):
            parse(text, SIGNS)
        return
    assert [codes[0] for codes in parse(text, SIGNS).leaf_codes] == kinds
    assert [codes[0] for codes in parse(str(parse(text, SIGNS)), SIGNS).leaf_codes] == kinds


@pytest.mark.parametrize("text", ["digit=3 and scale=big", "digit=3 IN scale=big", "digit=3 ignore scale=big"])
def test_words_that_join_are_whole_and_in_capitals(text: str) -> None:
    with pytest.raises(UsageError, match="description has"):
        parse(text, MNIST_A)


@pytest.mark.parametrize(("text", "operator"), [("digit=3 in scale=big", "IN COMMON"), ("digit=3 Ignore x", "IGNORE")])
def test_operators_are_named_in_full(text: str, operator: str) -> None:
    with pytest.raises(UsageError, match=f"or {operator} in capitals between descriptions"):
        parse(text, MNIST_A)


def test_parentheses_alone_join_nothing() -> None:
    made = parse("(digit=3 scale=big)", MNIST_A)
    assert (str(made), made.operators) == ("digit=3 scale=big", frozenset())
