"""Descriptions by attributes: their meaning by a naive model, their words, and what is refused in which sentence."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, strategies as some

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import OPERATORS, Expression, format_query, format_values, parse
from tests.descriptions.words import FRUIT, MNIST_A, SIGNS, Words

PAIRS = [(name, value) for name, values in zip(MNIST_A.names, MNIST_A.values, strict=True) for value in values]
EVERY = np.array(list(itertools.product(*(range(len(values)) for values in MNIST_A.values))), np.uint8)
Given = dict[str, str]

some_given = some.fixed_dictionaries(
    {}, optional={name: some.sampled_from(values) for name, values in zip(MNIST_A.names, MNIST_A.values, strict=True)}
)
joined = some.recursive(
    some_given,
    lambda inner: some.builds(lambda first, operator, last: (first, operator, last),
                              inner, some.sampled_from(OPERATORS), inner),
    max_leaves=5,
)  # fmt: skip
"""A set of pairs, or two of these with an operator between them."""


def written(tree: Given | tuple) -> str:
    if isinstance(tree, dict):
        return " ".join(f"{name}={value}" for name, value in tree.items()) or "anything"
    first, operator, last = (f"({written(one)})" if not isinstance(one, str) else one for one in tree)
    return f"{first} {operator} {last}"


def leaves(tree: Given | tuple) -> Iterator[Given]:
    if isinstance(tree, dict):
        yield tree
    else:
        yield from (*leaves(tree[0]), *leaves(tree[2]))


def meant(tree: Given | tuple) -> Given:
    """What a tree says, by sets of pairs; LookupError where it says nothing."""
    if isinstance(tree, dict):
        return tree
    first, last = meant(tree[0]), meant(tree[2])
    both = first.items() & last.items()
    if tree[1] == "IN COMMON":
        return dict(both)
    if tree[1] == "IGNORE":
        if len(both) < len(last):
            raise LookupError("after IGNORE, expected a part of")
        return dict(first.items() - last.items())
    if any(first[name] != last[name] for name in first.keys() & last.keys()):
        raise LookupError("asks for two values of")
    return first | last


def codes_of(said: Given) -> list[int]:
    return [values.index(said[name]) if name in said else UNKNOWN
            for name, values in zip(MNIST_A.names, MNIST_A.values, strict=True)]  # fmt: skip


def read_again(made: Expression) -> None:
    again = parse(str(made), MNIST_A)
    assert (str(again), again.key, again.codes.tolist()) == (str(made), made.key, made.codes.tolist())


@given(joined)
def test_operators_mean_a_plain_description(tree: Given | tuple) -> None:
    try:
        expected = meant(tree)
    except LookupError as refused:
        with pytest.raises(UsageError, match=str(refused)):
            parse(written(tree), MNIST_A)
        return
    made = parse(written(tree), MNIST_A)
    assert made.codes.tolist() == codes_of(expected) and made.codes.dtype == np.uint8
    assert made.meaning == format_query(codes_of(expected), MNIST_A)
    assert [one.tolist() for one in made.leaf_codes] == [codes_of(leaf) for leaf in leaves(tree)]
    assert made.operators == {word for word in OPERATORS if f" {word} " in written(tree)}
    assert made.restricted_attributes.tolist() == [name in expected for name in MNIST_A.names]
    read_again(made)


some_alternative = some.tuples(some_given, some.lists(some.sampled_from(PAIRS), max_size=3))


@given(some.lists(some_alternative, min_size=1, max_size=3))
def test_negation_and_alternatives_are_sets_of_values(alternatives: list[tuple[Given, list[tuple[str, str]]]]) -> None:
    parts = [
        " ".join(filter(None, [written(said) if said else "", *(f"NOT {name}={value}" for name, value in excluded)]))
        for said, excluded in alternatives
    ]
    text = " OR ".join(part or "anything" for part in parts)

    def fits(codes: np.ndarray) -> bool:
        """An unknown value fits where any would."""
        words = [{*values} if code == UNKNOWN else {values[code]}
                 for code, values in zip(codes, MNIST_A.values, strict=True)]  # fmt: skip
        return any(
            all(words[MNIST_A.names.index(name)] == {value} for name, value in said.items())
            and not any(value in words[MNIST_A.names.index(name)] for name, value in excluded)
            for said, excluded in alternatives
        )

    impossible = any(
        not ({said[name]} if name in said else {*values}) - {value for other, value in excluded if other == name}
        for said, excluded in alternatives
        for name, values in zip(MNIST_A.names, MNIST_A.values, strict=True)
    )
    if impossible:
        with pytest.raises(UsageError, match="leaves no value of"):
            parse(text, MNIST_A)
        return
    made = parse(text, MNIST_A)
    unknown = np.array([[UNKNOWN, 0, 0, 0], [3, UNKNOWN, 0, UNKNOWN], [UNKNOWN] * 4], np.uint8)
    rows = np.concatenate([EVERY, unknown])
    assert made.matches(rows).tolist() == [fits(row) for row in rows]
    used = {"OR"} if len(parts) > 1 else set()
    assert made.operators == used | ({"NOT"} if any(excluded for _, excluded in alternatives) else set())
    assert made.codes.tolist() == codes_of(alternatives[0][0] if len(parts) == 1 else {})
    restricted = {name for said, excluded in alternatives for name in (*said, *(one for one, _ in excluded))}
    assert made.restricted_attributes.tolist() == [name in restricted for name in MNIST_A.names]
    read_again(made)


ANY = [UNKNOWN] * 4


@pytest.mark.parametrize(
    ("text", "info", "said", "codes"),
    [
        ("scale=big,digit=3", MNIST_A, "digit=3 scale=big", [3, 0, UNKNOWN, UNKNOWN]),
        ("location='bottom-right'; orientation=upright", MNIST_A, "orientation=upright location=bottom-right", None),
        ("digit=* scale=small", MNIST_A, "scale=small", [UNKNOWN, 1, UNKNOWN, UNKNOWN]),
        ("big 3", MNIST_A, "digit=3 scale=big", None),
        ("small digit=3 'bottom-right'", MNIST_A, "digit=3 scale=small location=bottom-right", None),
        ("", MNIST_A, "anything", ANY),
        ("(digit=3 scale=big)", MNIST_A, "digit=3 scale=big", None),
        ("digit='3' AND scale=\"big\"", MNIST_A, "digit=3 AND scale=big", [3, 0, UNKNOWN, UNKNOWN]),
        ("digit=3 AND scale=big AND digit=3", MNIST_A, "(digit=3 AND scale=big) AND digit=3", None),
        ("NOT scale=big NOT digit=0, NOT scale='big'", MNIST_A, "NOT scale=big NOT digit=0", ANY),
        ("NOT digit=3 OR scale=small,digit=3", MNIST_A, "NOT digit=3 OR digit=3 scale=small", ANY),
        ("red apple", FRUIT, "colour=red fruit=apple", [0, 0]),
        ("apple 'deep red'", FRUIT, "colour='deep red' fruit=apple", [2, 0]),
        ("NOT red OR apple", FRUIT, "NOT colour=red OR fruit=apple", None),
        ("colour=orange", FRUIT, "colour=orange", [1, UNKNOWN]),
        # Parentheses inside a value belong to it.
        ("kind=f(x) AND kind='f(x)'", SIGNS, None, [0, UNKNOWN]),
        ("(kind=f(x)) AND size=big", SIGNS, None, [0, 0]),
        ("(kind=(none))IGNORE(kind=(none))", SIGNS, None, [UNKNOWN] * 2),
        ("kind=':)' AND kind=:\\)", SIGNS, None, [1, UNKNOWN]),
    ],
)
def test_what_is_typed_is_read_and_written_in_one_way(
    text: str, info: Words, said: str | None, codes: list[int] | None
) -> None:
    made = parse(text, info)
    assert said is None or str(made) == said
    assert codes is None or made.codes.tolist() == codes
    again = parse(str(made), info)
    assert str(again) == str(made) and [*map(list, again.leaf_codes)] == [*map(list, made.leaf_codes)]


REFUSED = {
    # pairs
    "didgit=3": "attribute 'didgit': did you mean 'digit'? Available: digit, scale, orientation, location",
    "scale=bgi": "scale has no value 'bgi': did you mean 'big'? Its values are big, small",
    "digit=12": "digit has no value '12'",
    "big small": "description gives 'scale' twice, as 'big' and 'small'; give each attribute once",
    "grand": "description has 'grand', expected attribute=value, or a value, such as digit=0 scale=big. The",
    "uprigt": "did you mean 'orientation=upright'?",
    "digit": "did you mean 'digit=...'?",
    "digit=3 digit=4": "description gives 'digit' twice, as '3' and '4'; give each attribute once",
    "digit='3": "has a quote that is not closed",
    "digit=": "digit has no value ''",
    # operators
    "digit=3 AND digit=5": "two values of 'digit'",
    "digit=3 IGNORE scale=big": "has scale=big after IGNORE, expected a part of digit=3",
    "digit=3 AND": "nothing on one side",
    "AND digit=3": "nothing on one side",
    "digit=3 OR": "nothing on one side",
    "OR digit=3": "nothing on one side",
    "digit=3 AND scale=big IGNORE digit=3": "side by side",
    "digit=3 IN COMMON digit=3 AND scale=big": "side by side",
    "(digit=3 AND scale=big": "never closed",
    "digit=3 AND scale=big)": "never opened",
    "(digit=3) scale=big AND digit=3": "right after a parenthesis",
    "digit=3 (scale=big) AND digit=3": "before a parenthesis",
    "digit=3 (scale=big)": "no operator before a parenthesis",
    "digit=3 AND NOT scale=big": "one or the other",
    "(digit=3 OR digit=5)": "has OR beside parentheses, expected one or the other",
    "digit=3 AND scale=huge": "no value 'huge'",
    "digit=3 AND size=big": "size",
    " AND ".join(["digit=3"] * 51): "joins 51 parts, expected at most 50",
    "(" * 21 + "digit=3" + ")" * 21: "inside each other",
    "digit=3 and scale=big": "or AND in capitals between descriptions",
    "digit=3 IN scale=big": "or IN COMMON in capitals between descriptions",
    "digit=3 in scale=big": "or IN COMMON in capitals between descriptions",
    "digit=3 Ignore x": "or IGNORE in capitals between descriptions",
    # what is excluded
    "digit=3 NOT": "NOT without attribute=value",
    "NOT NOT digit=3": "NOT without attribute=value",
    "NOT scale=*": "expected a value",
    "digit=3 NOT digit=3": "leaves no value of 'digit'",
    "digit=3 digit=5 OR scale=big": "gives 'digit' twice, as '3' and '5'",
    "NOT digit=12": "no value '12'",
    "orange": "'orange' is a value of 2 attributes; say which: colour=orange or fruit=orange",
    "kind='f(' AND kind='AND'": "two values of 'kind'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_is_said(text: str) -> None:
    info = FRUIT if text == "orange" else SIGNS if text.startswith("kind") else MNIST_A
    with pytest.raises(UsageError) as caught:
        parse(text, info)
    assert REFUSED[text] in str(caught.value) and "\n" not in str(caught.value)


def test_the_most_that_is_joined_is_read() -> None:
    assert parse(" AND ".join(["digit=3"] * 50), MNIST_A).meaning == "digit=3"
    assert parse("(" * 20 + "digit=3" + ")" * 20, MNIST_A).meaning == "digit=3"


# Anything a dataset may use as a value, quotes, commas and equals signs included.
_value = some.text(some.characters(exclude_categories=("C",)), min_size=1, max_size=6)


@given(some.lists(some.lists(_value, min_size=1, max_size=4, unique=True), min_size=1, max_size=4), some.data())
def test_format_then_parse_gives_the_codes_back(values: list[list[str]], data: some.DataObject) -> None:
    info = Words(tuple(f"attribute-{i}" for i in range(len(values))), tuple(tuple(v) for v in values))
    codes = [data.draw(some.sampled_from([*range(len(v)), UNKNOWN])) for v in values]
    assert parse(format_query(codes, info), info).codes.tolist() == codes


def test_codes_in_words() -> None:
    assert format_query([3, 0, UNKNOWN, 1], MNIST_A) == "digit=3 scale=big location=top-right"
    assert format_values([3, 0, UNKNOWN, 1], MNIST_A) == "3, big, *, top-right"
    with pytest.raises(UsageError, match="'scale' got code 2, expected 0 to 1 or 255 for unknown"):
        format_query([0, 2, 0, 0], MNIST_A)
    with pytest.raises(UsageError, match="got 3 attribute codes, expected 4"):
        format_values([0, 0, 0], MNIST_A)


@pytest.mark.parametrize(
    ("codes", "short"),
    [([1, 0, 1], "Bangs, Wavy Hair"), ([0, 0, 0], "none of 3"), ([1, UNKNOWN, 0], "Bangs, not Wavy Hair"),
     ([UNKNOWN] * 3, "anything")],
)  # fmt: skip
def test_answers_of_yes_and_no_are_short(codes: list[int], short: str) -> None:
    faces = Words(("Bangs", "Male", "Wavy_Hair"), (("no", "yes"),) * 3)
    assert format_values(np.array(codes, np.uint8), faces) == short
