"""Captions in free text: splitting into words, and suggestions for unknown words."""

import re
import unicodedata
from collections.abc import Sequence

from mmgen.core.errors import clip, find_nearest_name

__all__ = ["is_free_text", "normalise_text", "unknown_word_message", "split_into_words", "split_free_text"]

_MARKS = ".!?,;:'\"`()[]\u2018\u2019\u201c\u201d"
"""Marks before and after a word, where they are no part of it in the data."""
_WORD = re.compile(r"\d+(?:\.\d+)+|[^\W_](?:[^\W_]|\0)*(?:[-'][^\W_](?:[^\W_]|\0)*)*")
"""A word of a text in which NUL stands for every combining mark."""
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Variation selectors: they choose how the sign before them is drawn."""
_MOST_LISTED = 20
"""Words that a message lists."""


def is_free_text(slots: Sequence[str], vocabulary: Sequence[str]) -> bool:
    """Return True if captions are free text, that is, words in any order, where quotes are ordinary marks."""
    return not slots and not any(letter.isspace() for word in vocabulary for letter in word)


def split_free_text(text: str, vocabulary: Sequence[str]) -> list[str]:
    """Split a caption in free words, spelled as in the vocabulary where it has them.

    A word is looked up as it is, in any case; then without marks around it; then in parts separated by commas; then
    split as :func:`split_into_words` splits the captions of people's own pictures.

    Example:
        >>> split_free_text("The dog's (blue,red) ball.", ["the", "dog's", "blue", "red", "ball"])
        ['the', "dog's", 'blue', 'red', 'ball']
    """
    every = set(vocabulary)
    folded = {_fold_case(word): word for word in reversed(vocabulary)}

    def spelling_of(word: str) -> str | None:
        return word if word in every else folded.get(_fold_case(word))

    words = []
    for word in normalise_text(text).split():
        parts = [word] if spelling_of(word) or spelling_of(word.strip(_MARKS)) else word.replace(";", ",").split(",")
        bare = [part if spelling_of(part) else part.strip(_MARKS) for part in parts]
        for part in filter(None, bare):
            pieces = split_into_words(part)
            apart = not spelling_of(part) and all(map(spelling_of, pieces))
            words += [spelling_of(one) or one for one in (pieces if apart else [part])]
    return words


def split_into_words(text: str) -> list[str]:
    """Split a caption into lower-case words, when there is no vocabulary yet.

    Words are letters and digits with their accents and vowel signs, with hyphens and apostrophes inside, and points
    inside numbers; everything else separates them. Composed and decomposed accents are equal (Unicode's NFC).

    Example:
        >>> split_into_words("A large, dark-red circle; it’s 2.5 cm wide!")
        ['a', 'large', 'dark-red', 'circle', "it's", '2.5', 'cm', 'wide']
    """
    text = _fold_case(text).replace("’", "'")
    shape = "".join("\0" if unicodedata.category(sign) in ("Mn", "Mc") else sign for sign in text)
    return [text[slice(*word.span())] for word in _WORD.finditer(shape)]


def normalise_text(text: str) -> str:
    """Compose accents (Unicode's form NFC) and remove invisible characters.

    Zero-width spaces become spaces; joiners, soft hyphens, marks of direction and the like (category Cf) are removed.

    Example:
        >>> normalise_text("gru\u0308n\u200f co\u00adop") == "gr\u00fcn coop"
        True
    """
    if text.isascii():
        return text
    visible = _SELECTORS.sub("", text.replace("\u200b", " "))
    return unicodedata.normalize("NFC", "".join(sign for sign in visible if unicodedata.category(sign) != "Cf"))


def _fold_case(text: str) -> str:
    return normalise_text(normalise_text(text).casefold())


def unknown_word_message(subject: str, word: str, vocabulary: Sequence[str]) -> str:
    """Return the error message for a word that is not in the vocabulary of captions."""
    near = find_nearest_name(word, vocabulary)
    hint = f" did you mean '{near}'?" if near else ""
    few = f"{', '.join(vocabulary[:_MOST_LISTED])}{' ...' if len(vocabulary) > _MOST_LISTED else ''}"
    return f"{subject} got '{clip(word, 60)}', which is no word of the data:{hint} These are {len(vocabulary):,}: {few}"
