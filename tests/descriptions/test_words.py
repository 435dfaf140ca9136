"""Descriptions in words: parsing, suggestions, and the way back."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import (
    attributes_to_caption,
    batch_of_captions,
    batch_of_queries,
    caption_to_attributes,
    format_caption,
    format_query,
    format_values,
    parse,
    parse_caption,
)
from mmgen.modalities.text import TextDescription


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
        ("big 3", [3, 0, UNKNOWN, UNKNOWN]),
        ("small digit=3 'bottom-right'", [3, 1, UNKNOWN, 3]),
        ("", [UNKNOWN] * 4),
        ("anything", [UNKNOWN] * 4),
    ],
)
def test_what_is_not_mentioned_is_unknown(text: str, codes: list[int]) -> None:
    parsed = parse(text, MNIST_A)
    assert parsed.codes.dtype == np.uint8
    assert parsed.codes.tolist() == codes
    assert parsed.operators == frozenset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("didgit=3", "attribute 'didgit': did you mean 'digit'? Available: digit, scale, orientation, location"),
        ("scale=bgi", "scale has no value 'bgi': did you mean 'big'? Its values are big, small"),
        ("digit=12", "digit has no value '12'"),
        ("big small", "description gives 'scale' twice, as 'big' and 'small'; give each attribute once"),
        ("grand", "description has 'grand', expected attribute=value, or a value, such as digit=0 scale=big. The"),
        ("uprigt", "did you mean 'orientation=upright'?"),
        ("digit", "did you mean 'digit=...'?"),
        ("digit=3 digit=4", "description gives 'digit' twice, as '3' and '4'; give each attribute once"),
        ("digit='3", "has a quote that is not closed"),
        ("digit=", "digit has no value ''"),
    ],
)
def test_a_mistake_names_itself_and_suggests(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, MNIST_A)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


FRUIT = Words(("colour", "fruit"), (("red", "orange", "deep red"), ("apple", "orange")))


def test_a_value_of_one_attribute_needs_no_name() -> None:
    assert parse("red apple", FRUIT).codes.tolist() == [0, 0]
    assert parse("apple 'deep red'", FRUIT).codes.tolist() == [2, 0]
    assert str(parse("NOT red OR apple", FRUIT)) == "NOT colour=red OR fruit=apple"
    with pytest.raises(
        UsageError, match="'orange' is a value of 2 attributes; say which: colour=orange or fruit=orange"
    ):
        parse("orange", FRUIT)
    for advised in ("colour=orange", "fruit=orange"):
        parse(advised, FRUIT)


# Anything a dataset may use as a value, quotes, commas and equals signs included.
_value = st.text(st.characters(exclude_categories=("C",)), min_size=1, max_size=6)


@given(st.lists(st.lists(_value, min_size=1, max_size=4, unique=True), min_size=1, max_size=4), st.data())
def test_format_then_parse_gives_the_codes_back(values: list[list[str]], data: st.DataObject) -> None:
    info = Words(tuple(f"attribute-{i}" for i in range(len(values))), tuple(tuple(v) for v in values))
    codes = [data.draw(st.sampled_from([*range(len(v)), UNKNOWN])) for v in values]
    assert parse(format_query(codes, info), info).codes.tolist() == codes


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


@dataclass(frozen=True)
class Sentence:
    vocabulary: tuple[str, ...]
    length: int
    slots: tuple[str, ...] = ()


_OBJECT = ("size", "colour", "shape")
_VALUES = (("small", "large"), ("cyan", "red", "gray", "blue"), ("sphere", "cylinder", "cube"))
# In the order of a caption, as two-objects has them; "extra" is an attribute that no word spells.
SCENE = Words(
    (*(f"{name}_1" for name in _OBJECT), "relation", *(f"{name}_2" for name in _OBJECT), "extra"),
    (*_VALUES, ("right", "left"), *_VALUES, ("a", "b")),
)
CAPTION = Sentence(tuple(word for words in (*_VALUES, ("right", "left")) for word in words), 7, SCENE.names[:-1])
FREE = Sentence(("Male", "Smiling", "Mouth Slightly Open", "-"), 3)


def test_a_caption_in_words_and_back() -> None:
    codes = parse_caption("large red cube left small blue sphere", CAPTION, SCENE)
    assert codes.dtype == np.uint16
    assert " ".join(CAPTION.vocabulary[code] for code in codes) == "large red cube left small blue sphere"
    assert format_caption(codes, CAPTION) == "large red cube left small blue sphere"
    assert parse_caption("Large RED cube, left; small blue sphere", CAPTION).tolist() == codes.tolist()


def test_free_text_may_be_short_and_its_words_may_have_spaces() -> None:
    codes = parse_caption("smiling 'Mouth Slightly Open'", FREE)
    assert codes.tolist() == [1, 2, 4]
    assert format_caption(codes, FREE) == "Smiling 'Mouth Slightly Open'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "larg red cube left small blue sphere",
            "unknown word 1 of the caption, size_1, 'larg': did you mean 'large'?",
        ),
        ("red large cube left small blue sphere", "word 1 of the caption, size_1, is 'red', expected small or large"),
        ("large red left small blue sphere", "word 3 of the caption, shape_1, is 'left', expected sphere or cylinder"),
        ("large red cube left small blue", "has 6 words, expected 7 (size_1 colour_1 shape_1 relation size_2"),
        ("large red cube left small blue sphere cube", "has 8 words, expected 7"),
        ("", "has 0 words, expected 7"),
        ("large blu cube left small blue sphere", "did you mean 'blue'? Available: cyan, red, gray, blue"),
    ],
)
def test_a_mistake_in_a_caption_is_found_where_it_is(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_caption(text, CAPTION, SCENE)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_free_text_refuses_too_many_words_and_unknown_ones() -> None:
    with pytest.raises(UsageError, match=r"has 4 words, expected 1 to 3"):
        parse_caption("Male Male Male Male", FREE)
    with pytest.raises(UsageError, match=r"did you mean 'Smiling'\?"):
        parse_caption("Male Smilling", FREE)
    with pytest.raises(UsageError, match=r"got word codes \[0, 9\], expected 0 to 3 or 4 for no word"):
        format_caption([0, 9], FREE)


@given(st.data())
def test_captions_and_attributes_say_the_same(data: st.DataObject) -> None:
    codes = [data.draw(st.integers(0, len(words) - 1)) for words in SCENE.values[:-1]]
    tokens = attributes_to_caption(np.array([[*codes, 1]], np.uint8), CAPTION, SCENE)
    assert caption_to_attributes(tokens, CAPTION, SCENE).tolist() == [[*codes, UNKNOWN]]
    words = format_caption(tokens[0], CAPTION)
    assert words.split() == [SCENE.values[a][code] for a, code in enumerate(codes)]
    assert parse_caption(words, CAPTION, SCENE).tolist() == tokens[0].tolist()


def test_a_misplaced_word_says_nothing_about_its_slot() -> None:
    tokens = parse_caption("red large cube left small blue sphere", CAPTION)  # no attributes: nothing to check against
    assert caption_to_attributes(tokens, CAPTION, SCENE).tolist() == [UNKNOWN, UNKNOWN, 2, 1, 0, 3, 0, UNKNOWN]
    with pytest.raises(UsageError, match="a caption needs every word, got no shape_1"):
        attributes_to_caption(np.array([0, 0, UNKNOWN, 0, 0, 0, 0, 0], np.uint8), CAPTION, SCENE)
    with pytest.raises(UsageError, match="do not spell attributes"):
        attributes_to_caption(np.zeros(8, np.uint8), FREE, SCENE)


def test_batch_of_captions_holds_them_whole() -> None:
    batch = batch_of_captions(parse_caption("Male", FREE))
    assert batch.values["text"].tolist() == [[0, 4, 4]] and batch.present["text"].tolist() == [True]


@pytest.mark.parametrize(
    ("codes", "short"),
    [
        ([1, 0, 1], "Bangs, Wavy Hair"),
        ([0, 0, 0], "none of 3"),
        ([1, UNKNOWN, 0], "Bangs, not Wavy Hair"),
        ([UNKNOWN] * 3, "anything"),
    ],
)
def test_answers_of_yes_and_no_are_short(codes: list[int], short: str) -> None:
    faces = Words(("Bangs", "Male", "Wavy_Hair"), (("no", "yes"),) * 3)
    assert format_values(np.array(codes, np.uint8), faces) == short


@pytest.mark.parametrize("caption", ["large red cube.", "Large red cube!", "large, red cube .", "large. red. cube."])
def test_a_full_stop_is_no_word(caption: str) -> None:
    info = TextDescription(name="text", vocabulary=("large", "red", "cube"), length=3)
    assert parse_caption(caption, info).tolist() == [0, 1, 2]
    stops = TextDescription(name="text", vocabulary=("large", "red", "cube", ".", "cube."), length=4)
    assert parse_caption("large red cube .", stops).tolist() == [0, 1, 2, 3]
    assert parse_caption("large red cube.", stops).tolist()[:3] == [0, 1, 4]


@pytest.mark.parametrize(
    ("caption", "codes"),
    [
        ("a large blue circle", [0, 1, 2, 3]),
        ("A large, blue circle.", [0, 1, 2, 3]),
        ("a (large) blue “circle”!", [0, 1, 2, 3]),
        ("a large,blue circle", [0, 1, 2, 3]),
        ("the dog's circle", [5, 4, 3, 6]),
        ("the 'large' Dog's", [5, 1, 4, 6]),
    ],
)
def test_free_text_is_typed_as_people_type(caption: str, codes: list[int]) -> None:
    """Marks about a word, capitals and an apostrophe, which is no quote here."""
    info = TextDescription(name="text", vocabulary=("a", "large", "blue", "circle", "dog's", "the"), length=4)
    found = parse_caption(caption, info)
    assert found.tolist() == codes
    assert parse_caption(format_caption(found, info), info).tolist() == codes


def test_an_unknown_word_of_free_text_has_its_nearest() -> None:
    info = TextDescription(name="text", vocabulary=("blue", *(f"word{i}" for i in range(99))), length=4)
    with pytest.raises(
        UsageError, match=r"word 1 of the caption got 'blu', .* did you mean 'blue'\? These are 100: "
    ) as e:
        parse_caption("blu!", info)
    assert str(e.value).count("word") < 25 and str(e.value).endswith("...")
    with pytest.raises(UsageError, match=r"has 0 words, expected 1 to 4"):
        parse_caption(" ... ", info)
