"""Tables as separated text (CSV): one line of names, and rows of as many cells."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from mmgen.core.errors import DataError
from mmgen.core.parsing import printable
from mmgen.core.plain_text import NotTextError, decode_lines

_DECIMAL = re.compile(r"^([+-]?\d+),(\d+)$")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes (|)"}
_LONGEST_LINE = 2**24
_EXPECTED = "expected columns separated by commas, semicolons, tabs or pipes; save it as CSV (UTF-8)"
_NUMBERED = re.compile(r"(\S+\.\w+)#\d+\t")  # as Flickr8k and Flickr30k number the captions of a picture


@dataclass
class Separated:
    """Names of columns and rows of a table of separated text (CSV).

    Attributes:
        names: Names of the columns, as they stand there; "" for those without one.
        rows: The line that each row begins in, and its cells, as many as names; to be run through once.
        left_out: How many rows are left out, by reason; complete after the last row.
    """

    names: list[str]
    rows: Iterator[tuple[int, list[str]]]
    left_out: Counter[str] = field(default_factory=Counter)


def read_separated(data: bytes, where: str) -> Separated:
    """Read a table of separated text, whose first line names the columns.

    A first line ``sep=;``, as Excel writes it, says the separator. Flickr8k's captions, which have no line of names,
    become the columns file_name and text.

    Args:
        data: The file's bytes.
        where: Name of the file in errors.

    Raises:
        DataError: The text is no table.
    """
    lines = _lines(data, where)
    first = next(lines, "")
    if _NUMBERED.match(first):
        return Separated(["file_name", "text"], _flickr_rows(chain([first], lines), where))
    skipped, separator = 0, max(_SEPARATORS, key=first.count)
    if first.casefold().startswith("sep=") and len(first.strip()) <= 5:
        skipped, separator, first = 1, first[4:].strip() or "\t", next(lines, "")
    if separator not in _SEPARATORS or not first.strip():
        fault = "has an empty first line" if not first.strip() else f"says that '{separator}' separates its columns"
        raise DataError(f"{where} {fault}; {_EXPECTED}")
    rows = _rows(chain([first], lines), separator, skipped, where)
    _, names = next(rows)
    table = Separated(names, iter(()))
    table.rows = _even_rows(rows, table, separator, where)
    return table


def _lines(data: bytes, where: str) -> Iterator[str]:
    try:
        yield from decode_lines(io.BytesIO(data), _LONGEST_LINE)
    except NotTextError as error:
        raise DataError(f"cannot read {where}: {error}") from None


def _rows(lines: Iterator[str], separator: str, line: int, where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of every row that is not blank."""
    reader = csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=separator != "\t")
    last = 0
    try:
        for row in reader:
            if row:
                cells = [cell.strip() for cell in row]
                if separator == ";":  # as where a comma is the decimal sign
                    cells = [_DECIMAL.sub(r"\1.\2", cell) for cell in cells]
                yield line + last + 1, cells
            last = reader.line_num
    except csv.Error as error:
        raise DataError(
            f"{where} has in or behind line {line + last + 1:,} a quote that is not closed, or a cell of more than "
            f"{csv.field_size_limit():,} letters ({error}); save it as CSV (UTF-8)"
        ) from None


def _even_rows(
    rows: Iterator[tuple[int, list[str]]], table: Separated, separator: str, where: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with as many cells as there are names; leave out rows of empty cells."""
    number = len(table.names)
    for line, row in rows:
        if not any(row):
            table.left_out["in which every cell is empty"] += 1
        elif len(row) != number:
            raise DataError(
                f"{where} has {len(row)} cell{'s' * (len(row) > 1)} in line {line:,} "
                f"('{printable(separator.join(row), 60)}'), expected {number} as in its first line, separated by "
                f"{_SEPARATORS[separator]}; fix this line or the first one, or save the table as CSV (UTF-8)"
            )
        else:
            yield line, row


def _flickr_rows(lines: Iterator[str], where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield picture and caption of lines such as "1.jpg#0<tab>A dog"; quotes are letters there."""
    for number, line in enumerate(lines, 1):
        match = _NUMBERED.match(line)
        if match:
            yield number, [match[1], line[match.end() :].strip()]
        elif line.strip():
            raise DataError(
                f"{where} has '{printable(line.strip(), 60)}' in line {number:,}, expected the name of a picture, the "
                "number of the caption (1.jpg#0), a tab and the caption; fix the line"
            )
