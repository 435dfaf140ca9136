"""Attribute codes as text."""

from collections.abc import Sequence

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions._vocabulary import ANYTHING, SEPARATORS, Vocabulary

__all__ = ["format_query", "format_values", "quote_value"]

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
