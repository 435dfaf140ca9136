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


def test_what_was_typed_into_the_table_can_be_typed_again() -> None:
    said = ["The dog’s red/blue ball!", 'It\'s 2.5 cm wide; (dark-red), "round".', "A dog"]
    made = encode_captions("text", [(sentence,) for sentence in said], 32, 1)
    info = TextDescription(vocabulary=tuple(made.vocabulary), length=made.length)
    for row, sentence in enumerate(said):
        assert parse_caption(sentence, info).tolist() == made.codes[row].tolist()


SCRIPTS = {
    **{said: said.split() for said in ("हिन्दी में लाल वृत्त", "một hình tròn màu đỏ", "วงกลม ที่นี่")},
    **{said: said.split() for said in ("دَائِرَة حمراء", "עִגּוּל אדום")},
    "Cafe\u0301 CAFÉ": ["café", "café"],
    "İSTANBUL İstanbul istanbul": ["istanbul"] * 3,
    "红色的圆，很大": ["红色的圆", "很大"],
    "می\u200cخواهم": ["میخواهم"],
    "co\u00adop two\u200bwords \u202eno\u202c": ["coop", "two", "words", "no"],
    "a ❤\ufe0f 👨\u200d👩\u200d👧 2\ufe0f\u20e3 family": ["a", "2", "family"],
}  # fmt: skip


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("said", SCRIPTS)
def test_words_of_many_scripts_keep_their_accents_however_they_are_written(said: str, form: str) -> None:
    words = [unicodedata.normalize("NFC", word) for word in SCRIPTS[said]]
    typed = unicodedata.normalize(form, said)
    assert split_into_words(typed) == words
    assert [word for word in split_free_text(typed, words) if word in words] == words


CELLS = {
    "cafe\u0301 ": "caf\u00e9", "gru\u0308n": "gr\u00fcn", "gr\u00fcn\u200e": "gr\u00fcn", "co\u00adop": "coop",
    "👨\u200d👩\u200d👧": "👨👩👧", "می\u200cخواهم": "میخواهم", "\u202ered": "red", "a\u200bb": "a b",
    "\u200b\ufeff": None,
}  # fmt: skip


@pytest.mark.parametrize("typed", CELLS)
def test_cells_have_one_spelling_without_what_cannot_be_seen(typed: str) -> None:
    assert to_cell(typed) == CELLS[typed]
    info = AttributesDescription(names=("place",), values=(("bar", "caf\u00e9"),))
    assert parse("place=cafe\u0301", info).codes.tolist() == [1]


@pytest.mark.parametrize("refused", ["\x1b[2J", "\x00", "\ud800", "bell\x07"])
def test_cells_with_signs_that_steer_are_refused(refused: str) -> None:
    with pytest.raises(ValueError):
        to_cell(refused)
