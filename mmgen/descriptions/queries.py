"""Descriptions in words: ``digit=3 scale=big`` to attribute codes and back, captions to word codes and back.

An attribute that the description does not mention is unknown, never a default: "big" means a big digit of any kind,
orientation and place (VE Section 1 calls these abstract concepts). A caption is a whole sentence: it is there or not.
"""

import shlex
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mmgen.core.errors import UsageError, clip
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions.free_text import is_free, unknown_word, words_of_free_text
from mmgen.settings.registry import listed, nearest, unknown_name

if TYPE_CHECKING:
    from mmgen.core.batch import Batch

__all__ = [
    "AND",
    "ANYTHING",
    "IGNORE",
    "IN_COMMON",
    "NOT",
    "OPERATORS",
    "OR",
    "UNSPECIFIED",
    "TextVocabulary",
    "Vocabulary",
    "batch_of_captions",
    "batch_of_queries",
    "caption_of_codes",
    "codes_of_caption",
    "format_caption",
    "format_query",
    "format_values",
    "parse_caption",
    "parse_pair",
    "parse_query",
    "quoted",
    "split_words",
]

ANYTHING = "anything"
"""The description that mentions no attribute."""

NOT, OR = "NOT", "OR"
"""Words of expressions; see :mod:`mmgen.descriptions.expressions`."""
OPERATORS = AND, IN_COMMON, IGNORE = "AND", "IN COMMON", "IGNORE"
"""Words between descriptions; see :mod:`mmgen.descriptions.recombinations`."""

_SEPARATORS = " \t\r\n,;"
UNSPECIFIED = ("*", "?", "any", "unknown")
"""Values that say that an attribute is not specified; no attribute has one of that name."""


class Vocabulary(Protocol):
    """What a description is checked against; ``Dataset.attributes[...]`` is one.

    Attributes:
        names: One name per attribute, [A].
        values: The words of each attribute, [A] tuples of V words.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def values(self) -> tuple[tuple[str, ...], ...]: ...


class TextVocabulary(Protocol):
    """What a caption is checked against; ``Dataset.texts[...]`` and a model's ``text`` are ones.

    Attributes:
        vocabulary: The V words; a word's code is its position, and V stands for "no word".
        length: Most words in a caption, T.
        slots: For each position the attribute that it spells, [T]; empty for free text.
    """

    @property
    def vocabulary(self) -> tuple[str, ...]: ...

    @property
    def length(self) -> int: ...

    @property
    def slots(self) -> tuple[str, ...]: ...


_STOPS = ".!?"
"""What may end a sentence, where it is no word of the data."""


def split_words(text: str, signs: str = "") -> list[str]:
    """``text`` split at white space, commas and semicolons outside quotes; runs of ``signs`` are words too."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=signs)
    lexer.whitespace = _SEPARATORS
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        said = f"description '{text}' has a quote that is not closed; quote values as name='two words'"
        raise UsageError(said) from None


def _bare_word(word: str, info: Vocabulary) -> str:
    """The message for a word without ``=``: says which attribute has such a value."""
    if word in (NOT, OR):
        return f"description has {word}, which only drawing with guidance above 0 understands; draw so, or leave it out"
    if operator := next((o for o in (NOT, OR, *OPERATORS) if word.upper() in o.split()), ""):
        return f"description has '{word}', expected attribute=value, or {operator} in capitals between descriptions"
    owners = [name for name, words in zip(info.names, info.values, strict=True) if word in words]
    if owners:
        return f"description has '{word}', expected attribute=value: did you mean '{owners[0]}={word}'?"
    every = zip(reversed(info.names), reversed(info.values), strict=True)
    plain = {value: f"{name}={value}" for name, words in every for value in words}
    near = nearest(word, [*plain, *info.names])
    example = " ".join(f"{name}={quoted(words[0])}" for name, words in zip(info.names, info.values[:2], strict=False))
    hint = f": did you mean '{plain.get(near, near + '=...')}'?" if near else f", such as {example}."
    return f"description has '{word}', expected attribute=value{hint} The attributes are {listed(word, info.names)}"


def parse_query(text: str, info: Vocabulary) -> np.ndarray:
    """Attribute codes of a description.

    Args:
        text: ``attribute=value`` pairs in any order, separated by spaces, commas or semicolons; quotes hold values with
            spaces together. ``attribute=*`` says that it is not specified, as does leaving it out; "" and "anything"
            specify nothing.
        info: The attributes and their values.

    Returns:
        uint8 [A]; ``UNKNOWN`` (255) where the description says nothing.

    Raises:
        UsageError: A name or value does not exist (the nearest is suggested), or an attribute is given twice.
    """
    codes = np.full(len(info.names), UNKNOWN, np.uint8)
    words = split_words(text)
    if words == [ANYTHING]:
        return codes
    mentioned: dict[str, str] = {}
    for word in words:
        position, code = parse_pair(word, info)
        name, _, value = word.partition("=")
        if name in mentioned:
            raise UsageError(
                f"description gives '{name}' twice, as '{mentioned[name]}' and '{value}'; give each attribute once"
            )
        mentioned[name] = value
        codes[position] = code
    return codes


def parse_pair(word: str, info: Vocabulary) -> tuple[int, int]:
    """Position of the attribute and code of the value of ``attribute=value``; ``UNKNOWN`` for ``attribute=*``.

    Raises:
        UsageError: It is no such pair, or a name or value does not exist.
    """
    name, equals, value = word.partition("=")
    if not equals:
        raise UsageError(_bare_word(word, info))
    if name not in info.names:
        raise UsageError(unknown_name("attribute", name, info.names))
    position = info.names.index(name)
    words_of_it = info.values[position]
    for spelled in (value, unicodedata.normalize("NFC", value)):  # keyboards take letters with accents apart
        if spelled in words_of_it:
            return position, words_of_it.index(spelled)
    if value not in UNSPECIFIED:
        near = nearest(value, words_of_it)
        hint = f": did you mean '{near}'?" if near else "."
        raise UsageError(f"{name} has no value '{clip(value, 100)}'{hint} Its values are {listed(value, words_of_it)}")
    return position, UNKNOWN


def quoted(value: str) -> str:
    """A value as it must be typed: in quotes where it has spaces or signs."""
    plain = bool(value) and not any(c in _SEPARATORS or c in "'\"\\" for c in value)
    return value if plain else "'" + value.replace("'", "'\"'\"'") + "'"


def _check(codes: Sequence[int] | np.ndarray, info: Vocabulary) -> list[int]:
    plain = [int(code) for code in codes]
    if len(plain) != len(info.names):
        raise UsageError(f"got {len(plain)} attribute codes, expected {len(info.names)} ({', '.join(info.names)})")
    for name, words, code in zip(info.names, info.values, plain, strict=True):
        if code != UNKNOWN and not 0 <= code < len(words):
            raise UsageError(
                f"attribute '{name}' got code {code}, expected 0 to {len(words) - 1} or {UNKNOWN} for unknown"
            )
    return plain


def format_query(codes: Sequence[int] | np.ndarray, info: Vocabulary) -> str:
    """The description of ``codes`` [A]; :func:`parse_query` gives the codes back.

    Raises:
        UsageError: A code is outside its attribute's vocabulary.
    """
    pairs = [
        f"{name}={quoted(words[code])}"
        for name, words, code in zip(info.names, info.values, _check(codes, info), strict=True)
        if code != UNKNOWN
    ]
    return " ".join(pairs) or ANYTHING


_YES_NO = {"yes", "no"}


def format_values(codes: Sequence[int] | np.ndarray, info: Vocabulary, separator: str = ", ") -> str:
    """The values alone, as VE's figures print them: "3, big, *, top-left" with a star for what is not specified.

    Where every attribute is answered with yes or no, the names of those with yes: "Smiling, Wavy Hair"; if some are not
    specified, "not Smiling" for those with no as well.

    Raises:
        UsageError: A code is outside its attribute's vocabulary.
    """
    plain = _check(codes, info)
    if all(set(words) == _YES_NO for words in info.values):
        whole = UNKNOWN not in plain
        said = [
            f"{'' if words[code] == 'yes' else 'not '}{name.replace('_', ' ')}"
            for name, words, code in zip(info.names, info.values, plain, strict=True)
            if code != UNKNOWN and not (whole and words[code] == "no")
        ]
        return separator.join(said) or (f"none of {len(plain)}" if whole else ANYTHING)
    return separator.join(
        "*" if code == UNKNOWN else words[code] for words, code in zip(info.values, plain, strict=True)
    )


def batch_of_queries(codes: np.ndarray, name: str = "attributes", device: str = "cpu") -> "Batch":
    """A batch that holds descriptions and nothing else.

    Args:
        codes: uint8 [B, A] (or [A], taken as B = 1), ``UNKNOWN`` where not specified.
        name: Name of the attributes modality.
        device: Where the tensors go.

    Returns:
        Batch of one modality: codes int64 [B, A] with 0 where unknown, presence bool [B, A].
    """
    import torch

    from mmgen.core.batch import Batch

    known = np.atleast_2d(np.asarray(codes, dtype=np.uint8))
    present = known != UNKNOWN
    values = np.where(present, known, 0).astype(np.int64)
    return Batch(
        {name: torch.from_numpy(values).to(device)},
        {name: torch.from_numpy(present).to(device)},
    )


def _slot_words(info: TextVocabulary, attributes: Vocabulary | None) -> list[tuple[str, tuple[str, ...]]]:
    """For each position its attribute and the words that may stand there; empty where that is not known."""
    if not info.slots or attributes is None or not set(info.slots) <= set(attributes.names):
        return []
    return [(slot, attributes.values[attributes.names.index(slot)]) for slot in info.slots]


def _check_words(words: Sequence[str], info: TextVocabulary, slots: Sequence[tuple[str, tuple[str, ...]]]) -> None:
    """Refuse words that do not exist, or that stand where another attribute is spelled."""
    for position, word in enumerate(words):
        slot, expected = slots[position] if position < len(slots) else ("", info.vocabulary)
        if word in expected:
            continue
        where = f"word {position + 1} of the caption" + (f", {slot}," if slot else "")
        if word not in info.vocabulary and not info.slots:
            raise UsageError(unknown_word(where, word, info.vocabulary))
        if word not in info.vocabulary:
            raise UsageError(unknown_name(where, word, expected))
        raise UsageError(
            f"{where} is '{word}', expected {' or '.join(expected) if len(expected) < 4 else ', '.join(expected)}: "
            f"a caption reads {' '.join(info.slots)}"
        )


def _spoken(text: str, info: TextVocabulary) -> list[str]:
    """The words of a caption as the data have them, as far as they do."""
    if is_free(info.slots, info.vocabulary):
        return words_of_free_text(text, info.vocabulary)
    folded = {word.casefold(): word for word in reversed(info.vocabulary)}
    words = [word if word.casefold() in folded else word.rstrip(_STOPS) for word in split_words(text)]
    return [word if word in info.vocabulary else folded.get(word.casefold(), word) for word in words if word]


def parse_caption(text: str, info: TextVocabulary, attributes: Vocabulary | None = None) -> np.ndarray:
    """Word codes of a caption such as "large red rubber cube left small blue metal sphere".

    Args:
        text: Words separated by spaces or commas, in lower or upper case; quotes hold words with spaces together. A
            full stop that the data do not know is left out, in free text any mark about a word.
        info: The words, the longest caption, what each position spells.
        attributes: The values of the attributes that the positions spell; with them a word at a wrong place is found.

    Returns:
        uint16 [T]; V after the last word.

    Raises:
        UsageError: A word does not exist (the nearest is suggested) or stands in a wrong place, or the number of words
            is wrong.
    """
    words = _spoken(text, info)
    _check_words(words[: info.length], info, _slot_words(info, attributes))
    if not (len(words) == info.length if info.slots else 0 < len(words) <= info.length):
        expected = f"{info.length} ({' '.join(info.slots)})" if info.slots else f"1 to {info.length}"
        raise UsageError(f"the caption '{text}' has {len(words)} words, expected {expected}")
    codes = np.full(info.length, len(info.vocabulary), np.uint16)
    codes[: len(words)] = [info.vocabulary.index(word) for word in words]
    return codes


def format_caption(codes: Sequence[int] | np.ndarray, info: TextVocabulary) -> str:
    """The words of ``codes`` [T]; :func:`parse_caption` gives the codes back.

    Raises:
        UsageError: A code is outside the vocabulary.
    """
    plain, size = [int(code) for code in codes], len(info.vocabulary)
    if any(not 0 <= code <= size for code in plain):
        raise UsageError(f"caption got word codes {plain}, expected 0 to {size - 1} or {size} for no word")
    words = [info.vocabulary[code] for code in plain if code < size]
    return " ".join(words if is_free(info.slots, info.vocabulary) else map(quoted, words))


def codes_of_caption(tokens: np.ndarray, info: TextVocabulary, attributes: Vocabulary) -> np.ndarray:
    """What captions say, as attribute codes.

    Args:
        tokens: Word codes, integers [..., T].
        info: Text whose positions spell attributes.
        attributes: The attributes.

    Returns:
        uint8 [..., A]; ``UNKNOWN`` for attributes that the text does not spell, and where the word is none of theirs.
    """
    codes = np.full((*tokens.shape[:-1], len(attributes.names)), UNKNOWN, np.uint8)
    for position, (slot, words) in enumerate(_slot_words(info, attributes)):
        meaning = np.full(len(info.vocabulary) + 1, UNKNOWN, np.uint8)
        for code, word in enumerate(words):
            if word in info.vocabulary:
                meaning[info.vocabulary.index(word)] = code
        codes[..., attributes.names.index(slot)] = meaning[tokens[..., position]]
    return codes


def caption_of_codes(codes: np.ndarray, info: TextVocabulary, attributes: Vocabulary) -> np.ndarray:
    """Captions that spell attribute codes; the inverse of :func:`codes_of_caption`.

    Args:
        codes: uint8 [..., A].
        info: Text whose positions spell attributes.
        attributes: The attributes.

    Returns:
        Word codes uint16 [..., T].

    Raises:
        UsageError: The text spells no attributes, or one that it spells is unknown.
    """
    slots = _slot_words(info, attributes)
    if not slots:
        raise UsageError("this text does not spell attributes, so they make no caption; give a caption instead")
    tokens = np.zeros((*codes.shape[:-1], info.length), np.uint16)
    for position, (slot, words) in enumerate(slots):
        wanted = codes[..., attributes.names.index(slot)]
        if (wanted == UNKNOWN).any():
            raise UsageError(f"a caption says every word, got no {slot}; give all of: {' '.join(info.slots)}")
        tokens[..., position] = np.array([info.vocabulary.index(word) for word in words], np.uint16)[wanted]
    return tokens


def batch_of_captions(tokens: np.ndarray, name: str = "text", device: str = "cpu") -> "Batch":
    """A batch that holds captions and nothing else.

    Args:
        tokens: Word codes, integers [B, T] (or [T], taken as B = 1).
        name: Name of the text modality.
        device: Where the tensors go.

    Returns:
        Batch of one modality: codes int64 [B, T], all present.
    """
    import torch

    from mmgen.core.batch import Batch

    values = torch.from_numpy(np.atleast_2d(np.asarray(tokens)).astype(np.int64)).to(device)
    return Batch({name: values}, {name: torch.ones(len(values), dtype=torch.bool, device=device)})
