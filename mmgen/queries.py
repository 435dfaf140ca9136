"""Descriptions of concepts in words: ``digit=3 scale=big`` to attribute codes and back.

An attribute that the description does not mention is unknown, never a default: "big" means a big digit of any kind,
orientation and place (VE Section 1 calls these abstract concepts).
"""

import difflib
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mmgen.errors import UsageError
from mmgen.notation import UNKNOWN
from mmgen.registry import unknown_name

if TYPE_CHECKING:
    from mmgen.batch import Batch

__all__ = ["ANYTHING", "Vocabulary", "batch_of_queries", "format_query", "format_values", "parse_query"]

ANYTHING = "anything"
"""The description that mentions no attribute."""

_SEPARATORS = " \t\r\n,;"
_UNSPECIFIED = ("*", "?", "any", "unknown")


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


def _words(text: str) -> list[str]:
    """``text`` split at white space, commas and semicolons outside quotes."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace = _SEPARATORS
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        raise UsageError(
            f"description '{text}' has a quote that is not closed; quote values as name='two words'"
        ) from None


def _bare_word(word: str, info: Vocabulary) -> str:
    """The message for a word without ``=``: says which attribute has such a value."""
    owners = [name for name, words in zip(info.names, info.values, strict=True) if word in words]
    if owners:
        return f"description has '{word}', expected attribute=value: did you mean '{owners[0]}={word}'?"
    every = [f"{name}={value}" for name, words in zip(info.names, info.values, strict=True) for value in words]
    plain = {pair.partition("=")[2]: pair for pair in reversed(every)}
    near = difflib.get_close_matches(word, [*plain, *info.names], n=1, cutoff=0.5)
    hint = f"did you mean '{plain.get(near[0], near[0] + '=...')}'? " if near else ""
    return f"description has '{word}', expected attribute=value: {hint}Attributes: {', '.join(info.names)}"


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
    words = _words(text)
    if words == [ANYTHING]:
        return codes
    mentioned: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(_bare_word(word, info))
        if name not in info.names:
            raise UsageError(unknown_name("attribute", name, info.names))
        if name in mentioned:
            raise UsageError(
                f"description gives '{name}' twice, as '{mentioned[name]}' and '{value}'; give each attribute once"
            )
        mentioned[name] = value
        position = info.names.index(name)
        words_of_it = info.values[position]
        if value in words_of_it:
            codes[position] = words_of_it.index(value)
        elif value not in _UNSPECIFIED:
            raise UsageError(unknown_name(f"value of '{name}'", value, words_of_it))
    return codes


def _quoted(value: str) -> str:
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
        f"{name}={_quoted(words[code])}"
        for name, words, code in zip(info.names, info.values, _check(codes, info), strict=True)
        if code != UNKNOWN
    ]
    return " ".join(pairs) or ANYTHING


def format_values(codes: Sequence[int] | np.ndarray, info: Vocabulary, separator: str = ", ") -> str:
    """The values alone, as VE's figures print them: "3, big, *, top-left" with a star for what is not specified.

    Raises:
        UsageError: A code is outside its attribute's vocabulary.
    """
    plain = _check(codes, info)
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

    from mmgen.batch import Batch

    known = np.atleast_2d(np.asarray(codes, dtype=np.uint8))
    present = known != UNKNOWN
    values = np.where(present, known, 0).astype(np.int64)
    return Batch(
        {name: torch.from_numpy(values).to(device)},
        {name: torch.from_numpy(present).to(device)},
    )
