"""Cells of tables: values of CSV, JSON, Parquet or other tables as a text, or several texts."""

import math
from decimal import Decimal
from typing import Any

from mmgen.core.parsing import MalformedError, OutOfBounds, printable
from mmgen.descriptions import normalise_text

__all__ = ["Cell", "Columns", "to_cell", "to_texts"]

Cell = str | None
"""Text; None for an empty cell."""

Columns = dict[str, list[Cell]]
"""Cells by column; all columns have the same length."""

_LONGEST = 2**17  # letters
_MOST_TEXTS = 1000


def to_cell(value: Any) -> Cell:
    """Convert a value of JSON or of another table to a cell: yes and no for booleans, None for missing values.

    Letters with accents are spelled one way (NFC). Signs that cannot be seen stay, as some join letters or emoji; a
    text of nothing else is missing.

    Example:
        >>> [to_cell(value) for value in (" red cube ", 3, 3.0, 0.25, True, None, float("nan"), "")]
        ['red cube', '3', '3', '0.25', 'yes', None, None, None]
    """
    if isinstance(value, str):
        if len(value) > _LONGEST:
            raise MalformedError(f"a text of {len(value):,} letters, expected at most {_LONGEST:,}")
        value = normalise_text(value)
        if not value.isprintable() and any(not (sign.isprintable() or sign.isspace()) for sign in value):
            raise MalformedError(f"a control character ('{printable(value, 40)}')")
        return value.strip() or None
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return None if math.isnan(value) else f"{value:.15g}"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}" if value.is_finite() else None
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if isinstance(value, OutOfBounds):
        raise MalformedError(f"what no table can hold ({value.error})")
    kind = {"dict": "a table", "bytes": "bytes", "list": "a list"}.get(type(value).__name__, type(value).__name__)
    raise MalformedError(f"{kind}, expected a text or a number")


def to_texts(value: Any) -> tuple[str, ...] | None:
    """Return the distinct texts of a list in their order; None if it is no list of texts.

    Example:
        >>> to_texts(["A dog.", " A dog. ", "It runs."]), to_texts(["A dog.", 3]), to_texts([])
        (('A dog.', 'It runs.'), None, ())
    """
    if not isinstance(value, list) or any(not (one is None or isinstance(one, str)) for one in value):
        return None
    if len(value) > _MOST_TEXTS:
        raise MalformedError(f"a list of {len(value):,} texts, expected at most {_MOST_TEXTS:,}")
    return tuple(dict.fromkeys(filter(None, map(to_cell, value))))
