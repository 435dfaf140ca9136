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
    parse_caption,
)
from mmgen.modalities.text import TextDescription
from tests.descriptions.words import Words

# Anything a dataset may use as a value, quotes, commas and equals signs included.


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


def free(*vocabulary: str, length: int = 4) -> TextDescription:
    return TextDescription(name="text", vocabulary=vocabulary, length=length)


SAID = "large red cube left small blue sphere"
CUBES, DOGS = free("large", "red", "cube", length=3), free("a", "large", "blue", "circle", "dog's", "the")
STOPS = free("large", "red", "cube", ".", "cube.")


@pytest.mark.parametrize(
    ("text", "info", "words"),
    [
        (SAID, CAPTION, SAID),
        ("Large RED cube, left; small blue sphere", CAPTION, SAID),
        ("smiling 'Mouth Slightly Open'", FREE, "Smiling 'Mouth Slightly Open'"),
        # Marks about a word, capitals and an apostrophe, which is no quote in free text.
        ("A large, blue circle.", DOGS, "a large blue circle"),
        ("a (large) blue “circle”!", DOGS, "a large blue circle"),
        ("a large,blue circle", DOGS, "a large blue circle"),
        ("the dog's circle", DOGS, "the dog's circle"),
        ("the 'large' Dog's", DOGS, "the large dog's"),
        *((f, CUBES, "large red cube") for f in ("large red cube.", "Large red cube!", "large. red. cube .")),
        ("large red cube .", STOPS, "large red cube ."),
        ("large red cube.", STOPS, "large red cube."),
    ],
)
def test_a_caption_is_read_as_people_type_and_written_in_one_way(text: str, info: Sentence, words: str) -> None:
    codes = parse_caption(text, info)
    assert codes.dtype == np.uint16 and codes.shape == (info.length,)
    assert format_caption(codes, info) == words
    assert parse_caption(words, info).tolist() == codes.tolist()


MANY = free("blue", *(f"word{i}" for i in range(99)))


@pytest.mark.parametrize(
    ("text", "info", "said"),
    [
        (f"larg {SAID[6:]}", CAPTION, "unknown word 1 of the caption, size_1, 'larg': did you mean 'large'?"),
        ("red large cube left small blue sphere", CAPTION,
         "word 1 of the caption, size_1, is 'red', expected small or large"),
        ("large red left small blue sphere", CAPTION,
         "word 3 of the caption, shape_1, is 'left', expected sphere or cylinder"),
        ("large red cube left small blue", CAPTION, "has 6 words, expected 7 (size_1 colour_1 shape_1 relation size_2"),
        (f"{SAID} cube", CAPTION, "has 8 words, expected 7"),
        ("", CAPTION, "has 0 words, expected 7"),
        ("large blu cube left small blue sphere", CAPTION, "did you mean 'blue'? Available: cyan, red, gray, blue"),
        ("Male Male Male Male", FREE, "has 4 words, expected 1 to 3"),
        ("Male Smilling", FREE, "did you mean 'Smiling'?"),
        (" ... ", MANY, "has 0 words, expected 1 to 4"),
        ("blu!", MANY, "word 1 of the caption got 'blu', which is no word of the data: did you mean 'blue'? These are "
         f"100: blue, {', '.join(f'word{i}' for i in range(19))} ..."),
    ],
)  # fmt: skip
def test_a_mistake_in_a_caption_is_found_where_it_is(text: str, info: Sentence, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_caption(text, info, SCENE)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_codes_that_are_no_words_are_refused() -> None:
    for code in (-1, 5, 9):
        with pytest.raises(UsageError, match=rf"got word codes \[0, {code}\], expected 0 to 3 or 4 for no word"):
            format_caption([0, code], FREE)
