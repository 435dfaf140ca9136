"""Captions: what a table says and what somebody types later are taken apart alike."""

from hypothesis import given
from hypothesis import strategies as st

from mmgen.data_recipes._own._words import captions_of
from mmgen.free_text import words_of, words_of_free_text
from mmgen.modalities.text import TextDescription
from mmgen.queries import parse_caption

SENTENCES = st.text(alphabet="aBé1 .,-'’\"!?;/()_\n:", min_size=1, max_size=30)


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
