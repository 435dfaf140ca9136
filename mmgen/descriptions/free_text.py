"""Captions in free words, as people type them: their words with marks about them, and the nearest word of the data."""

import re
import unicodedata
from collections.abc import Sequence

from mmgen.core.errors import clip
from mmgen.settings.registry import nearest

__all__ = ["is_free", "one_spelling", "unknown_word", "words_of", "words_of_free_text"]

_MARKS = ".!?,;:'\"`()[]\u2018\u2019\u201c\u201d"
"""What may stand about a word, where it is no part of it in the data."""
_WORD = re.compile(r"\d+(?:\.\d+)+|[^\W_](?:[^\W_]|\0)*(?:[-'][^\W_](?:[^\W_]|\0)*)*")
"""A word of a text in which NUL stands for every sign that belongs to the letter before it."""
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Marks that choose how the sign before them is drawn."""
_MOST_LISTED = 20
"""Words that a message lists."""


def is_free(slots: Sequence[str], vocabulary: Sequence[str]) -> bool:
    """Whether captions are written as people write, so that spaces part words and quotes are marks like others."""
    return not slots and not any(letter.isspace() for word in vocabulary for letter in word)


def words_of_free_text(text: str, vocabulary: Sequence[str]) -> list[str]:
    """The words of a caption as the data have them, as far as they do.

    A word is looked for as it is, in any case; then without the marks about it; then in parts where commas part it;
    then as :func:`words_of` takes the captions of people's own pictures apart.

    Example:
        >>> words_of_free_text("The dog's (blue,red) ball.", ["the", "dog's", "blue", "red", "ball"])
        ['the', "dog's", 'blue', 'red', 'ball']
    """
    every = set(vocabulary)
    folded = {_folded(word): word for word in reversed(vocabulary)}

    def known(word: str) -> str | None:
        return word if word in every else folded.get(_folded(word))

    found = []
    for word in one_spelling(text).split():
        parts = [word] if known(word) or known(word.strip(_MARKS)) else word.replace(";", ",").split(",")
        bare = [part if known(part) else part.strip(_MARKS) for part in parts]
        for part in filter(None, bare):
            said = words_of(part)
            apart = not known(part) and all(map(known, said))
            found += [known(one) or one for one in (said if apart else [part])]
    return found


def words_of(text: str) -> list[str]:
    """The words of a caption of which nobody has said what its words are, in lower case.

    Letters and digits are words, with their accents and vowel signs, with hyphens and apostrophes inside, and points
    inside numbers; all else parts them. An accent may stand by itself behind its letter or not (Unicode's NFC).

    Example:
        >>> words_of("A large, dark-red circle; it’s 2.5 cm wide!")
        ['a', 'large', 'dark-red', 'circle', "it's", '2.5', 'cm', 'wide']
    """
    text = _folded(text).replace("’", "'")
    shape = "".join("\0" if unicodedata.category(sign) in ("Mn", "Mc") else sign for sign in text)
    return [text[slice(*word.span())] for word in _WORD.finditer(shape)]


def one_spelling(text: str) -> str:
    """A text as all that look alike are written: accents with their letters (Unicode's NFC), no sign that is not seen.

    Zero-width spaces are spaces; joiners, soft hyphens, marks of direction and the like (category Cf) are left out.

    Example:
        >>> one_spelling("gru\u0308n\u200f co\u00adop") == "gr\u00fcn coop"
        True
    """
    if text.isascii():
        return text
    seen = _SELECTORS.sub("", text.replace("\u200b", " "))
    return unicodedata.normalize("NFC", "".join(sign for sign in seen if unicodedata.category(sign) != "Cf"))


def _folded(text: str) -> str:
    return one_spelling(one_spelling(text).casefold())


def unknown_word(where: str, word: str, vocabulary: Sequence[str]) -> str:
    """The message for a word that free text does not have."""
    near = nearest(word, vocabulary)
    hint = f" did you mean '{near}'?" if near else ""
    few = f"{', '.join(vocabulary[:_MOST_LISTED])}{' ...' if len(vocabulary) > _MOST_LISTED else ''}"
    return f"{where} got '{clip(word, 60)}', which the data do not have:{hint} They have {len(vocabulary):,}: {few}"
