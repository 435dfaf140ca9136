"""Descriptions in words: parsing, suggestions, and the way back."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmgen.errors import UsageError
from mmgen.notation import UNKNOWN
from mmgen.queries import batch_of_queries, format_query, format_values, parse_query


@dataclass(frozen=True)
class Words:
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


MNIST_A = Words(
    ("digit", "scale", "orientation", "location"),
    (
        tuple("0123456789"),
        ("big", "small"),
        ("clockwise", "upright", "counterclockwise"),
        ("top-left", "top-right", "bottom-left", "bottom-right"),
    ),
)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("digit=3 scale=big", [3, 0, UNKNOWN, UNKNOWN]),
        ("scale=big,digit=3", [3, 0, UNKNOWN, UNKNOWN]),
        ("location='bottom-right'; orientation=upright", [UNKNOWN, UNKNOWN, 1, 3]),
        ("digit=* scale=small", [UNKNOWN, 1, UNKNOWN, UNKNOWN]),
        ("", [UNKNOWN] * 4),
        ("anything", [UNKNOWN] * 4),
    ],
)
def test_what_is_not_mentioned_is_unknown(text: str, codes: list[int]) -> None:
    parsed = parse_query(text, MNIST_A)
    assert parsed.dtype == np.uint8
    assert parsed.tolist() == codes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("didgit=3", "attribute 'didgit': did you mean 'digit'? Available: digit, scale, orientation, location"),
        ("scale=bgi", "unknown value of 'scale' 'bgi': did you mean 'big'? Available: big, small"),
        ("digit=12", "unknown value of 'digit' '12'"),
        ("big", "description has 'big', expected attribute=value: did you mean 'scale=big'?"),
        ("uprigt", "did you mean 'orientation=upright'?"),
        ("digit", "did you mean 'digit=...'?"),
        ("digit=3 digit=4", "description gives 'digit' twice, as '3' and '4'; give each attribute once"),
        ("digit='3", "has a quote that is not closed"),
        ("digit=", "unknown value of 'digit' ''"),
    ],
)
def test_a_mistake_names_itself_and_suggests(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_query(text, MNIST_A)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


# Anything a dataset may use as a value, quotes, commas and equals signs included.
_value = st.text(st.characters(exclude_categories=("C",)), min_size=1, max_size=6)


@given(st.lists(st.lists(_value, min_size=1, max_size=4, unique=True), min_size=1, max_size=4), st.data())
def test_format_then_parse_gives_the_codes_back(values: list[list[str]], data: st.DataObject) -> None:
    info = Words(tuple(f"attribute-{i}" for i in range(len(values))), tuple(tuple(v) for v in values))
    codes = [data.draw(st.sampled_from([*range(len(v)), UNKNOWN])) for v in values]
    assert parse_query(format_query(codes, info), info).tolist() == codes


def test_formats() -> None:
    assert format_query([3, 0, UNKNOWN, 1], MNIST_A) == "digit=3 scale=big location=top-right"
    assert format_query([UNKNOWN] * 4, MNIST_A) == "anything"
    assert format_values([3, 0, UNKNOWN, 1], MNIST_A) == "3, big, *, top-right"


def test_codes_outside_the_vocabulary_are_refused() -> None:
    with pytest.raises(UsageError, match="'scale' got code 2, expected 0 to 1 or 255 for unknown"):
        format_query([0, 2, 0, 0], MNIST_A)
    with pytest.raises(UsageError, match="got 3 attribute codes, expected 4"):
        format_values([0, 0, 0], MNIST_A)


def test_batch_masks_what_is_unknown() -> None:
    batch = batch_of_queries(np.array([[3, UNKNOWN], [UNKNOWN, 1]], np.uint8))
    assert batch.values["attributes"].tolist() == [[3, 0], [0, 1]]
    assert batch.present["attributes"].tolist() == [[True, False], [False, True]]
    assert batch.size == 2
    assert batch_of_queries(np.array([1, 2], np.uint8)).values["attributes"].shape == (1, 2)
