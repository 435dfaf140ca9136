"""Captions: whole sentences as word codes."""

from collections.abc import Sequence

import numpy as np

from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions._formatting import quote_value
from mmgen.descriptions._free_text import is_free_text, split_free_text, unknown_word_message
from mmgen.descriptions._vocabulary import ANYTHING, TextVocabulary, Vocabulary
from mmgen.descriptions._words import split_words

__all__ = ["attributes_to_caption", "caption_to_attributes", "format_caption", "is_caption", "parse_caption"]

_STOPS = ".!?"
"""Marks that may end a sentence, where they are no words of the data."""


def is_caption(text: str) -> bool:
    """Return True if a description is a caption, that is, not of the form attribute=value."""
    return "=" not in text and text.strip() not in ("", ANYTHING)


def parse_caption(text: str, info: TextVocabulary, attributes: Vocabulary | None = None) -> np.ndarray:
    """Convert a caption such as "large red rubber cube left small blue metal sphere" to word codes [T].

    Args:
        text: Words separated by spaces or commas, in lower or upper case; quotes hold words with spaces together. A
            full stop that the data do not know is left out, in free text any mark around a word.
        info: The words, the longest caption, the attribute that each position spells.
        attributes: The values of these attributes; with them a word at a wrong place is found.

    Returns:
        uint16 [T]; V after the last word.

    Raises:
        UsageError: A word does not exist (the nearest is suggested) or stands in a wrong place, or the number of words
            is wrong.
    """
    words = _split_caption(text, info)
    _check_words(words[: info.length], info, _words_of_slots(info, attributes))
    if not (len(words) == info.length if info.slots else 0 < len(words) <= info.length):
        expected = f"{info.length} ({' '.join(info.slots)})" if info.slots else f"1 to {info.length}"
        raise UsageError(f"the caption '{text}' has {len(words)} words, expected {expected}")
    codes = np.full(info.length, len(info.vocabulary), np.uint16)
    codes[: len(words)] = [info.vocabulary.index(word) for word in words]
    return codes


def format_caption(codes: Sequence[int] | np.ndarray, info: TextVocabulary) -> str:
    """Convert word codes [T] to a caption; the inverse of :func:`parse_caption`.

    Raises:
        UsageError: A code is outside the vocabulary.
    """
    plain, size = [int(code) for code in codes], len(info.vocabulary)
    if any(not 0 <= code <= size for code in plain):
        raise UsageError(f"caption got word codes {plain}, expected 0 to {size - 1} or {size} for no word")
    words = [info.vocabulary[code] for code in plain if code < size]
    return " ".join(words if is_free_text(info.slots, info.vocabulary) else map(quote_value, words))


def caption_to_attributes(tokens: np.ndarray, info: TextVocabulary, attributes: Vocabulary) -> np.ndarray:
    """Convert word codes of captions [..., T] to attribute codes uint8 [..., A].

    They are ``UNKNOWN`` for attributes that the text does not spell, and where the word is none of their values.

    Args:
        tokens: Word codes, integers [..., T].
        info: Text whose positions spell attributes.
        attributes: The attributes.
    """
    codes = np.full((*tokens.shape[:-1], len(attributes.names)), UNKNOWN, np.uint8)
    for position, (slot, words) in enumerate(_words_of_slots(info, attributes)):
        meaning = np.full(len(info.vocabulary) + 1, UNKNOWN, np.uint8)
        for code, word in enumerate(words):
            if word in info.vocabulary:
                meaning[info.vocabulary.index(word)] = code
        codes[..., attributes.names.index(slot)] = meaning[tokens[..., position]]
    return codes


def attributes_to_caption(codes: np.ndarray, info: TextVocabulary, attributes: Vocabulary) -> np.ndarray:
    """Convert attribute codes [..., A] to word codes of captions, uint16 [..., T].

    Args:
        codes: uint8 [..., A].
        info: Text whose positions spell attributes.
        attributes: The attributes.

    Raises:
        UsageError: The text spells no attributes, or one that it spells is unknown.
    """
    slots = _words_of_slots(info, attributes)
    if not slots:
        raise UsageError("captions of these data do not spell attributes; describe by a caption instead")
    tokens = np.zeros((*codes.shape[:-1], info.length), np.uint16)
    for position, (slot, words) in enumerate(slots):
        values = codes[..., attributes.names.index(slot)]
        if (values == UNKNOWN).any():
            raise UsageError(f"a caption needs every word, got no {slot}; give all of: {' '.join(info.slots)}")
        tokens[..., position] = np.array([info.vocabulary.index(word) for word in words], np.uint16)[values]
    return tokens


def _split_caption(text: str, info: TextVocabulary) -> list[str]:
    """Split a caption into words, spelled as in the vocabulary where it has them."""
    if is_free_text(info.slots, info.vocabulary):
        return split_free_text(text, info.vocabulary)
    folded = {word.casefold(): word for word in reversed(info.vocabulary)}
    words = [word if word.casefold() in folded else word.rstrip(_STOPS) for word in split_words(text)]
    return [word if word in info.vocabulary else folded.get(word.casefold(), word) for word in words if word]


def _words_of_slots(info: TextVocabulary, attributes: Vocabulary | None) -> list[tuple[str, tuple[str, ...]]]:
    """Return, for each position of a caption, the name of its attribute and the words allowed there."""
    if not info.slots or attributes is None or not set(info.slots) <= set(attributes.names):
        return []
    return [(slot, attributes.values[attributes.names.index(slot)]) for slot in info.slots]


def _check_words(words: Sequence[str], info: TextVocabulary, slots: Sequence[tuple[str, tuple[str, ...]]]) -> None:
    """Refuse words that are not in the vocabulary or not allowed at their position."""
    for position, word in enumerate(words):
        slot, expected = slots[position] if position < len(slots) else ("", info.vocabulary)
        if word in expected:
            continue
        where = f"word {position + 1} of the caption" + (f", {slot}," if slot else "")
        if word not in info.vocabulary and not info.slots:
            raise UsageError(unknown_word_message(where, word, info.vocabulary))
        if word not in info.vocabulary:
            raise UsageError(format_unknown_name(where, word, expected))
        raise UsageError(
            f"{where} is '{word}', expected {' or '.join(expected) if len(expected) < 4 else ', '.join(expected)}: "
            f"a caption reads {' '.join(info.slots)}"
        )
