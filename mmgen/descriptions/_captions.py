"""Captions: whole sentences as word codes."""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from mmgen.core.errors import UsageError, clip, find_nearest_name, format_unknown_name
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions._vocabulary import ANYTHING, TextVocabulary, Vocabulary, quote_value, split_words

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


def named_attributes(tokens: np.ndarray, info: TextVocabulary, attributes: Vocabulary) -> np.ndarray:
    """Return which attributes captions name by a word, bool [..., A]; none where fewer than two words are names.

    Args:
        tokens: Word codes, integers [..., T].
        info: The words.
        attributes: The attributes.
    """
    codes = {word.casefold(): code for code, word in enumerate(info.vocabulary)}
    columns = [codes.get(name.casefold(), -1) for name in attributes.names]
    if sum(column >= 0 for column in columns) < 2:
        return np.zeros((*tokens.shape[:-1], len(columns)), np.bool_)
    return np.stack([(tokens == column).any(-1) for column in columns], -1)


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


DOTTED_I = "i\u0307"
"""What becomes of the Turkish capital I with a dot in lower case: an i, whose second dot nobody sees."""


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
    return normalise_text(normalise_text(text).casefold()).replace(DOTTED_I, "i")


def unknown_word_message(subject: str, word: str, vocabulary: Sequence[str]) -> str:
    """Return the error message for a word that is not in the vocabulary of captions."""
    near = find_nearest_name(word, vocabulary)
    hint = f" did you mean '{near}'?" if near else ""
    few = f"{', '.join(vocabulary[:_MOST_LISTED])}{' ...' if len(vocabulary) > _MOST_LISTED else ''}"
    return f"{subject} got '{clip(word, 60)}', which is no word of the data:{hint} These are {len(vocabulary):,}: {few}"
