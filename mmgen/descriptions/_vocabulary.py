"""Vocabularies: words of the data, and words of the grammar of descriptions."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN

if TYPE_CHECKING:
    from mmgen.core.batch import Batch


ANYTHING = "anything"
"""The description that mentions no attribute."""
UNSPECIFIED = ("*", "?", "any", "unknown")
"""Values that leave an attribute unspecified; no attribute has a value of that name."""
NOT, OR = "NOT", "OR"
"""Negation and alternatives, which guidance answers."""
OPERATORS = AND, IN_COMMON, IGNORE = "AND", "IN COMMON", "IGNORE"
"""SCAN's recombination operators, which a posterior with networks for them answers."""
SEPARATORS = " \t\r\n,;"
"""Signs between words."""


class Vocabulary(Protocol):
    """Protocol of objects with names of attributes and their values, such as ``Dataset.attributes[...]``.

    Attributes:
        names: One name per attribute, [A].
        values: The words of each attribute, [A] tuples of V words.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def values(self) -> tuple[tuple[str, ...], ...]: ...


class TextVocabulary(Protocol):
    """Protocol of objects with the words of captions, such as ``Dataset.texts[...]``.

    Attributes:
        vocabulary: The V words; a word's code is its position, and V stands for "no word".
        length: Largest number of words in a caption, T.
        slots: For each position the attribute that it spells, [T]; empty for free text.
    """

    @property
    def vocabulary(self) -> tuple[str, ...]: ...

    @property
    def length(self) -> int: ...

    @property
    def slots(self) -> tuple[str, ...]: ...


OPEN, CLOSE = "(", ")"
_ALONE = (None, NOT, OR, *" ".join(OPERATORS).split())
"""Words that a parenthesis may follow without a space."""
_PIECE = re.compile(
    r"""(?P<separators>[ \t\r\n,;]+) | (?P<sign>[()]) | '(?P<single>[^']*)' | "(?P<double>(?:\\.|[^"\\])*)"
    | \\(?P<escaped>.) | (?P<plain>[^ \t\r\n,;()'"\\]+)""",
    re.VERBOSE | re.DOTALL,
)


def split_words(text: str, *, signs: bool = False) -> list[str]:
    """Split a description at white space, commas and semicolons outside quotes, and remove the quotes."""
    words: list[str] = []
    word: str | None = None
    inside, at = 0, 0  # parentheses open inside the word
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise UsageError(f"description '{text}' has a quote that is not closed; quote values as name='two words'")
        at, kind = piece.end(), piece.lastgroup
        content = piece[str(kind)]
        apart = signs and kind == "sign" and (word in _ALONE if content == OPEN else not inside)
        if kind == "separators" or apart:
            words += [] if word is None else [word]
            words += [content] if apart else []
            word, inside = None, 0
            continue
        if kind == "sign":
            inside += 1 if content == OPEN else -1
        elif kind == "double":
            content = re.sub(r'\\(["\\])', r"\1", content)
        word = (word or "") + content
    return words if word is None else [*words, word]


def batch_of_queries(codes: np.ndarray, name: str = "attributes", device: str = "cpu") -> "Batch":
    """Convert attribute codes of descriptions to a batch that posteriors can be conditioned on.

    Args:
        codes: uint8 [B, A] (or [A], taken as B = 1), ``UNKNOWN`` where unspecified.
        name: Name of the attributes modality.
        device: Device of the tensors.
    """
    import torch

    from mmgen.core.batch import Batch

    known = np.atleast_2d(np.asarray(codes, dtype=np.uint8))
    present = known != UNKNOWN
    values = np.where(present, known, 0).astype(np.int64)
    return Batch({name: torch.from_numpy(values).to(device)}, {name: torch.from_numpy(present).to(device)})


def batch_of_captions(tokens: np.ndarray, name: str = "text", device: str = "cpu") -> "Batch":
    """Convert word codes of captions to a batch that posteriors can be conditioned on.

    Args:
        tokens: Word codes, integers [B, T] (or [T], taken as B = 1).
        name: Name of the text modality.
        device: Device of the tensors.
    """
    import torch

    from mmgen.core.batch import Batch

    values = torch.from_numpy(np.atleast_2d(np.asarray(tokens)).astype(np.int64)).to(device)
    return Batch({name: values}, {name: torch.ones(len(values), dtype=torch.bool, device=device)})


_YES_NO = {"yes", "no"}


def quote_value(value: str) -> str:
    """Return an attribute value in the form for a description, in quotes if it has blanks or punctuation."""
    plain = bool(value) and not any(sign in SEPARATORS or sign in "'\"\\()" for sign in value)
    return value if plain else "'" + value.replace("'", "'\"'\"'") + "'"


def format_query(codes: Sequence[int] | np.ndarray, info: Vocabulary) -> str:
    """Convert attribute codes [A] to a description such as "shape=cube, colour=red".

    Raises:
        UsageError: A code is outside its attribute's vocabulary.
    """
    pairs = [
        f"{name}={quote_value(words[code])}"
        for name, words, code in zip(info.names, info.values, _check_codes(codes, info), strict=True)
        if code != UNKNOWN
    ]
    return " ".join(pairs) or ANYTHING


def format_values(codes: Sequence[int] | np.ndarray, info: Vocabulary, separator: str = ", ") -> str:
    """Convert attribute codes to their values alone, as VE's figures print them: "3, big, *", * for any value.

    Where every attribute has the values yes and no, return the names of those with yes: "Smiling, Wavy Hair"; if some
    are unspecified, "not Smiling" for those with no as well.

    Raises:
        UsageError: A code is outside its attribute's vocabulary.
    """
    plain = _check_codes(codes, info)
    if not all(set(words) == _YES_NO for words in info.values):
        pairs = zip(info.values, plain, strict=True)
        return separator.join("*" if code == UNKNOWN else words[code] for words, code in pairs)
    whole = UNKNOWN not in plain
    answers = [
        f"{'' if words[code] == 'yes' else 'not '}{name.replace('_', ' ')}"
        for name, words, code in zip(info.names, info.values, plain, strict=True)
        if code != UNKNOWN and not (whole and words[code] == "no")
    ]
    return separator.join(answers) or (f"none of {len(plain)}" if whole else ANYTHING)


def _check_codes(codes: Sequence[int] | np.ndarray, info: Vocabulary) -> list[int]:
    """Return attribute codes as a list, after checking their number and range."""
    plain = [int(code) for code in codes]
    if len(plain) != len(info.names):
        raise UsageError(f"got {len(plain)} attribute codes, expected {len(info.names)} ({', '.join(info.names)})")
    for name, words, code in zip(info.names, info.values, plain, strict=True):
        if code != UNKNOWN and not 0 <= code < len(words):
            raise UsageError(
                f"attribute '{name}' got code {code}, expected 0 to {len(words) - 1} or {UNKNOWN} for unknown"
            )
    return plain
