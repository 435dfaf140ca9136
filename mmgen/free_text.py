"""Captions in free words, as people type them: their words with marks about them, and the nearest word of the data."""

from collections.abc import Sequence

from mmgen.errors import clip
from mmgen.registry import nearest

__all__ = ["is_free", "unknown_word", "words_of_free_text"]

_MARKS = ".!?,;:'\"`()[]\u2018\u2019\u201c\u201d"
"""What may stand about a word, where it is no part of it in the data."""
_MOST_LISTED = 20
"""Words that a message lists."""


def is_free(slots: Sequence[str], vocabulary: Sequence[str]) -> bool:
    """Whether captions are written as people write, so that spaces part words and quotes are marks like others."""
    return not slots and not any(letter.isspace() for word in vocabulary for letter in word)


def words_of_free_text(text: str, vocabulary: Sequence[str]) -> list[str]:
    """The words of a caption as the data have them, as far as they do.

    A word is looked for as it is, in any case; then without the marks about it; then in parts where commas part it.

    Example:
        >>> words_of_free_text("The dog's (blue,red) ball.", ["the", "dog's", "blue", "red", "ball"])
        ['the', "dog's", 'blue', 'red', 'ball']
    """
    every = set(vocabulary)
    folded = {word.casefold(): word for word in reversed(vocabulary)}

    def known(word: str) -> str | None:
        return word if word in every else folded.get(word.casefold())

    found = []
    for word in text.split():
        parts = [word] if known(word) or known(word.strip(_MARKS)) else word.replace(";", ",").split(",")
        bare = [part if known(part) else part.strip(_MARKS) for part in parts]
        found += [known(part) or part for part in bare if part]
    return found


def unknown_word(where: str, word: str, vocabulary: Sequence[str]) -> str:
    """The message for a word that free text does not have."""
    near = nearest(word, vocabulary)
    hint = f" did you mean '{near}'?" if near else ""
    few = f"{', '.join(vocabulary[:_MOST_LISTED])}{' ...' if len(vocabulary) > _MOST_LISTED else ''}"
    return f"{where} got '{clip(word, 60)}', which the data do not have:{hint} They have {len(vocabulary):,}: {few}"
