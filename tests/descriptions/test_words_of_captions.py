"""Captions: what a table says and what somebody types later are taken apart alike."""

import unicodedata

import pytest
from hypothesis import given, strategies as st

from mmgen.data_recipes._own._captions import encode_captions
from mmgen.data_recipes._own._tables import to_cell
from mmgen.descriptions import parse, parse_caption, split_free_text, split_into_words
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.text import TextDescription

SENTENCES = st.text(alphabet="aBé1\u0308\u094d\u200d .,-'’\"!?;/()_\n:", min_size=1, max_size=30)


@given(SENTENCES)
def test_every_caption_of_the_data_is_understood_as_the_data_have_it(sentence: str) -> None:
    words = split_into_words(sentence)
    vocabulary = sorted(set(words))
    assert all(word.isprintable() and not word.isspace() for word in words)
    assert split_into_words(" ".join(words)) == words
    if words:
        assert split_free_text(" ".join(words), vocabulary) == words


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("हिन्दी में लाल वृत्त", ["हिन्दी", "में", "लाल", "वृत्त"]),
        ("Cafe\u0301 CAFÉ", ["café", "café"]),
        ("İSTANBUL İstanbul istanbul", ["istanbul", "istanbul", "istanbul"]),
        ("một hình tròn màu đỏ", ["một", "hình", "tròn", "màu", "đỏ"]),
        ("红色的圆，很大", ["红色的圆", "很大"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("สีแดง", ["สีแดง"]),
        ("co\u00adop two\u200bwords \u202eno\u202c", ["coop", "two", "words", "no"]),
        ("a ❤\ufe0f 👨\u200d👩\u200d👧 2\ufe0f\u20e3 family", ["a", "2", "family"]),
    ],
)
def test_words_of_many_scripts(said: str, words: list[str]) -> None:
    assert split_into_words(said) == words
    for form in ("NFC", "NFD"):
        typed = unicodedata.normalize(form, said)
        assert split_into_words(typed) == words
        assert [word for word in split_free_text(typed, words) if word in words] == words


def test_cells_have_one_spelling_without_what_cannot_be_seen() -> None:
    assert to_cell("cafe\u0301 ") == "caf\u00e9"
    seen = {
        "👨\u200d👩\u200d👧": "👨👩👧",
        "می\u200cخواهم": "میخواهم",
        "co\u00adop": "coop",
        "\u202ered": "red",
        "a\u200bb": "a b",
    }
    for typed, kept in seen.items():
        assert to_cell(typed) == kept
    assert to_cell("\u200b\ufeff") is None
    for refused in ("\x1b[2J", "\x00", "\ud800"):
        with pytest.raises(ValueError):
            to_cell(refused)
    info = AttributesDescription(names=("place",), values=(("bar", "caf\u00e9"),))
    assert parse("place=cafe\u0301", info).codes.tolist() == [1]


def test_what_was_typed_into_the_table_can_be_typed_again() -> None:
    said = ["The dog’s red/blue ball!", 'It\'s 2.5 cm wide; (dark-red), "round".', "A dog"]
    made = encode_captions("text", [(sentence,) for sentence in said], 32, 1)
    info = TextDescription(vocabulary=tuple(made.vocabulary), length=made.length)
    for row, sentence in enumerate(said):
        assert parse_caption(sentence, info).tolist() == made.codes[row].tolist()


@pytest.mark.parametrize("sentence", ["hình tròn màu đỏ", "लाल वृत्त", "วงกลม ที่นี่", "دَائِرَة حمراء", "עִגּוּל אדום"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_word_keeps_its_accents_and_vowel_signs_however_they_are_written(sentence: str, form: str) -> None:
    words = split_into_words(unicodedata.normalize("NFC", sentence))
    assert words == unicodedata.normalize("NFC", sentence).split()
    typed = unicodedata.normalize(form, sentence)
    assert split_into_words(typed) == split_free_text(typed, words) == words


def test_cells_that_look_alike_are_alike_and_signs_of_direction_are_no_fault() -> None:
    assert to_cell("gru\u0308n") == to_cell("gr\u00fcn\u200e") == "gr\u00fcn"
    assert to_cell("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645") == "\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"
    with pytest.raises(ValueError, match="bell"):
        to_cell("bell\x07")
