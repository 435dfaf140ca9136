"""Attributes from the columns of a table: their values, and columns that are refused or left out."""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError, UsageError, format_unknown_name
from mmgen.core.notation import UNKNOWN
from mmgen.core.parsing import printable
from mmgen.data_recipes._own._files import list_examples, shell_quoted
from mmgen.data_recipes._own._tables import Cell, Columns

_MANY = 20  # different numbers or sentences, of which more are measures or captions
_LEAST = 3
"""Pictures that a value has on average, where a column becomes an attribute without being named: ids have one each."""

_NOT_IN_NAMES = re.compile(r"[\s,;='\"\\]+")  # what a description in words could not have
_LONGEST = 100  # letters of a value
_SENTENCE = 4  # words
_SPACES = re.compile(r"[\s_-]")
_MOST_COUNTED = 20

Edges = int | tuple[float, ...]
"""Number of bins of equal counts, or the edges between bins."""


@dataclass
class Attributes:
    """Attributes of N pictures: names of values, and codes.

    Attributes:
        values: Names of values in the order of their codes, by attribute.
        codes: uint8 [N] by attribute, 255 unknown.
        numbers: float64 [N] of each attribute that was binned, NaN unknown.
        notes: Lines for people.
    """

    values: dict[str, list[str]] = field(default_factory=dict)
    codes: dict[str, NDArray[np.uint8]] = field(default_factory=dict)
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def table(self) -> NDArray[np.uint8] | None:
        """Codes of all attributes, uint8 [N, A]; None without attributes."""
        return np.stack(list(self.codes.values()), axis=1) if self.codes else None


def check_columns(option: str, names: Sequence[str], columns: Columns) -> None:
    """Refuse an option's names that are no columns of the table."""
    for name in names:
        if name not in columns:
            raise UsageError(f"{option}: {format_unknown_name('column', name, list(columns))}")


def parse_bins(texts: Sequence[str]) -> dict[str, Edges]:
    """Parse the option ``--bins``; return the number of bins, or the edges between bins, by column.

    Example:
        >>> parse_bins(["age=4", "height=1.5:1.8"])
        {'age': 4, 'height': (1.5, 1.8)}
    """
    edges_of: dict[str, Edges] = {}
    for text in texts:
        name, equals, numerals = text.rpartition("=")
        numbers = [_parse_number(part) for part in numerals.split(":")]
        edges = [number for number in numbers if number is not None]
        whole = len(edges) == 1 and numerals.isdecimal()
        if not (equals and name and len(edges) == len(numbers)) or any(a >= b for a, b in pairwise(edges)):
            raise UsageError(
                f"--bins got '{printable(text, 60)}', expected a column and a number of bins (age=5) or where they "
                "meet, ascending (age=18:40:65)"
            )
        if (whole and not 2 <= int(numerals) <= UNKNOWN) or len(edges) >= UNKNOWN:
            raise UsageError(f"--bins got '{printable(text, 60)}', expected 2 to {UNKNOWN} bins")
        if name in edges_of:
            raise UsageError(f"--bins names the column '{printable(name, 60)}' twice; name it once")
        edges_of[name] = int(numerals) if whole else tuple(edges)
    return edges_of


def _parse_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def build_attributes(
    columns: Columns, selected: Sequence[str] | None, bins: Mapping[str, Edges], advice: str
) -> Attributes:
    """Convert the columns of a table to attributes.

    Args:
        columns: Cells by column.
        selected: Names of columns that become attributes; None selects them by their values.
        bins: Number of bins or edges, by column.
        advice: Clause for errors on how to leave out columns, before their names.

    Raises:
        DataError: A column cannot become an attribute.
        UsageError: Two columns would have one name.
    """
    attributes = Attributes()
    name_counts = Counter(
        _attribute_name(name) for name in columns if selected is None or name in selected or name in bins
    )
    too_many: list[str] = []
    said: dict[tuple[Cell, ...], str] = {}
    for name, raw in columns.items():
        cells = [cell if cell is None else " ".join(cell.split()) for cell in raw]
        if name in bins:
            _add_bins(attributes, name, cells, bins[name])
            continue
        if selected is not None and name not in selected:
            attributes.notes.append(f"left out: column '{name}', which --attributes does not name")
            continue
        counts = Counter(cell for cell in cells if cell is not None)
        if not counts:
            problem = "nothing is said in it"
        elif len(counts) == 1 and selected is None:
            problem = f"it is always '{next(iter(counts))}'"
        elif selected is None and (twin := said.setdefault(tuple(cells), name)) != name:
            problem = f"it says the same as '{twin}' of every picture"
        elif len(counts) > _MANY and all(_parse_number(value) is not None for value in counts):
            too_many.append(name)
            continue
        elif selected is None and len(counts) > _MANY and (sentences := _caption_advice(name, counts)):
            problem = f"it has {len(counts):,} different values; {sentences}"
        elif selected is None and counts.total() < _LEAST * len(counts):
            problem = (
                f"it has {len(counts):,} different values in {counts.total():,} pictures, expected at least {_LEAST} "
                f"pictures a value; up to {UNKNOWN} values become an attribute if --attributes names it"
            )
        elif selected is None and len(counts) > UNKNOWN:
            problem = f"it has {len(counts):,} different values, expected at most {UNKNOWN}; make it coarser"
        else:
            _add_values(attributes, name, cells, counts)
            continue
        if selected is not None:
            raise DataError(f"--attributes names the column '{name}', but {problem}; leave it out")
        attributes.notes.append(f"left out: column '{name}': {problem}")
    if too_many:
        one = len(too_many) == 1
        raise DataError(
            f"the column{'' if one else 's'} {list_examples(too_many)} hold{'s' if one else ''} more than {_MANY} "
            f"different numbers; make bins of them, --bins '{too_many[0]}=5', or {advice} "
            f"{shell_quoted(','.join(too_many[:_MANY]))}"
        )
    repeated = [name for name, count in name_counts.items() if count > 1 and name in attributes.values]
    if repeated:
        last = [name for name in columns if _attribute_name(name) == repeated[0]][-1]
        raise UsageError(
            f"two columns would be the attribute '{repeated[0]}'; rename one of them, or {advice} {shell_quoted(last)}"
        )
    twice = [" and ".join(group) for values in attributes.values.values() for group in _spelled_twice(values)]
    if twice:
        attributes.notes.append(
            f"warning: {len(twice)} value{'s' if len(twice) > 1 else ''} spelled in several ways, each of which is a "
            f"value of its own: {list_examples(twice)}; mend the table if they are one"
        )
    return attributes


def _spelled_twice(values: Sequence[str]) -> list[list[str]]:
    """Group values that are equal numbers, or differ in case and spaces alone.

    Example:
        >>> _spelled_twice(["Red", "red", "dark red", "Dark_red", "1", "1.0", "2"])
        [['Red', 'red'], ['dark red', 'Dark_red'], ['1', '1.0']]
    """
    groups: dict[float | str, list[str]] = {}
    for value in values:
        number = _parse_number(value)
        groups.setdefault(_SPACES.sub("", value.casefold()) if number is None else number, []).append(value)
    return [group for group in groups.values() if len(group) > 1]


def _caption_advice(name: str, values: Collection[str]) -> str:
    """Return advice to use a column as captions if its values are sentences, else ""."""
    if sum(len(value.split()) >= _SENTENCE for value in values) <= len(values) // 2:
        return ""
    return f"these are sentences, and --caption {shell_quoted(name)} takes them as captions"


def _attribute_name(name: str) -> str:
    """Return a column's name as an attribute's name in descriptions: "hair colour" becomes hair_colour."""
    return _NOT_IN_NAMES.sub("_", name)


def _add_attribute(attributes: Attributes, name: str, values: list[str], codes: NDArray[np.uint8]) -> None:
    attribute = _attribute_name(name)
    attributes.values[attribute], attributes.codes[attribute] = values, codes
    counts = np.bincount(codes, minlength=UNKNOWN + 1)
    value_counts = [f"{value} {counts[code]:,}" for code, value in enumerate(values[:_MOST_COUNTED])]
    more = [f"and {len(values) - _MOST_COUNTED} more"] if len(values) > _MOST_COUNTED else []
    unknown = [f"unknown {counts[UNKNOWN]:,}"] if counts[UNKNOWN] else []
    column = f" (column '{name}')" if attribute != name else ""
    attributes.notes.append(f"attribute {attribute}{column}: {', '.join([*value_counts, *more, *unknown])}")


def _add_values(attributes: Attributes, name: str, cells: Sequence[Cell], counts: Counter[str]) -> None:
    if len(counts) > UNKNOWN:
        raise DataError(
            f"the column '{name}' has {len(counts):,} different values, expected at most {UNKNOWN}; leave it out of "
            "--attributes, or make it coarser"
        )
    long = next((value for value in counts if len(value) > _LONGEST), None)
    if long is not None:
        raise DataError(
            f"the column '{name}' has a value of {len(long):,} letters ({printable(long, 40)}), expected at most "
            f"{_LONGEST}; name the column with --caption if it is a text, or leave it out with --ignore"
        )
    numbers = {value: _parse_number(value) for value in counts}
    numeric = all(number is not None for number in numbers.values())
    values = sorted(counts, key=lambda value: (numbers[value] or 0 if numeric else 0, value.casefold(), value))
    code = {value: number for number, value in enumerate(values)}
    _add_attribute(attributes, name, values, np.array([code.get(cell or "", UNKNOWN) for cell in cells], np.uint8))
    if sentences := _caption_advice(name, values):
        attributes.notes.append(f"  {_attribute_name(name)}: {sentences}")


def _add_bins(attributes: Attributes, name: str, cells: Sequence[Cell], edges: Edges) -> None:
    for row, cell in enumerate(cells, 1):
        if cell is not None and _parse_number(cell) is None:
            raise DataError(
                f"--bins names the column '{name}', but picture {row:,} has '{printable(cell, 40)}' there, expected a "
                "number or nothing; fix it, or leave it out of --bins"
            )
    parsed = [_parse_number(cell or "") for cell in cells]
    numbers = np.array([math.nan if number is None else number for number in parsed])
    known = numbers[~np.isnan(numbers)]
    if isinstance(edges, int):
        # Edges are numbers that occur, which are short to say.
        cuts = np.unique(np.quantile(known, np.arange(1, edges) / edges, method="higher")) if len(known) else known
        cuts = cuts[cuts > known.min()] if len(known) else cuts
    else:
        cuts = np.array(edges)
    if not len(cuts):
        raise DataError(f"the column '{name}' has too few different numbers for bins; leave it out of --bins")
    numerals = [f"{edge:.6g}" for edge in cuts]
    values = [f"below-{numerals[0]}", *(f"{low}-to-{high}" for low, high in pairwise(numerals)), f"from-{numerals[-1]}"]
    if len(set(values)) < len(values):
        raise DataError(
            f"the bins of column '{name}' are too narrow to have different names; ask for fewer with --bins"
        )
    codes = np.where(np.isnan(numbers), UNKNOWN, np.searchsorted(cuts, numbers, side="right")).astype(np.uint8)
    _add_attribute(attributes, name, values, codes)
    attributes.numbers[_attribute_name(name)] = numbers
