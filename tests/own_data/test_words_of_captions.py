"""Captions: what a table says and what somebody types later are taken apart alike."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmgen.data_recipes._own._tables import cell_of
from mmgen.data_recipes._own._words import captions_of
from mmgen.free_text import words_of, words_of_free_text
from mmgen.modalities.text import TextDescription
from mmgen.queries import parse_caption

SENTENCES = st.text(alphabet="aBé1\u0308\u094d\u200d .,-'’\"!?;/()_\n:", min_size=1, max_size=30)


@given(SENTENCES)
def test_every_caption_of_the_data_is_understood_as_the_data_have_it(sentence: str) -> None:
    words = words_of(sentence)
    vocabulary = sorted(set(words))
    assert all(word.isprintable() and not word.isspace() for word in words)
    assert words_of(" ".join(words)) == words
    if words:
        assert words_of_free_text(" ".join(words), vocabulary) == words


def test_what_was_typed_into_the_table_can_be_typed_again() -> None:
    said = ["The dog’s red/blue ball!", 'It\'s 2.5 cm wide; (dark-red), "round".', "A dog"]
    made = captions_of("text", said, 32, 1)
    info = TextDescription(vocabulary=tuple(made.vocabulary), length=made.length)
    for row, sentence in enumerate(said):
        assert parse_caption(sentence, info).tolist() == made.codes[row].tolist()


@pytest.mark.parametrize(
    "sentence", ["hình tròn màu đỏ", "लाल वृत्त", "วงกลม ที่นี่", "دَائِرَة حمراء", "עִגּוּל אדום", "i̇stanbul"]
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_word_keeps_its_accents_and_vowel_signs_however_they_are_written(sentence: str, form: str) -> None:
    words = words_of(unicodedata.normalize("NFC", sentence))
    assert words == unicodedata.normalize("NFC", sentence).split()
    typed = unicodedata.normalize(form, sentence)
    assert words_of(typed) == words_of_free_text(typed, words) == words


def test_cells_that_look_alike_are_alike_and_signs_of_direction_are_no_fault() -> None:
    assert cell_of("gru\u0308n") == cell_of("gr\u00fcn\u200e") == "gr\u00fcn"
    assert cell_of("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645") == "\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"
    with pytest.raises(ValueError, match="bell"):
        cell_of("bell\x07")
