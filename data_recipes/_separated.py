"""Tables as separated text: separators, quotes, and lines that are no rows."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mmgen.core.errors import DataError
from mmgen.core.parsing import printable
from mmgen.core.plain_text import NotTextError, decode_lines

__all__ = ["SEPARATORS", "Separated", "read_separated"]

SEPARATORS = {
    ",": "commas", "\t": "tabs", ";": "semicolons", "|": "pipes (|)", "^": "carets (^)", ":": "colons", " ": "spaces",
}  # fmt: skip
"""Separators of columns in words, in the order in which they are tried."""

_LOOKED_AT = 100  # lines by which the separator is found
_TITLES = 20  # of them, which may stand above the names
_LONGEST_LINE = 2**24
_TOTALS = ("total", "totals", "sum", "average", "mean", "count", "grand total", "summe", "gesamt")

ColumnTest = Callable[[str], bool]
"""Whether a column, by its name, is one that the table must have."""


@dataclass
class Separated:
    """Names of columns and rows of a table of separated text (CSV).

    Attributes:
        names: Names of the columns, as they stand there; "" for those without one.
        rows: The line that each row begins in, and its cells, as many as names; to be run through once.
        notes: Lines for people, complete after the last row.
        left_out: How many rows are left out, by reason; complete after the last row.
    """

    names: list[str]
    rows: Iterator[tuple[int, list[str]]]
    notes: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Format:
    """Format of separated text: separator, quotes, lines to skip.

    Attributes:
        separator: Sign between columns.
        quote: Sign around cells.
        ignores_quotes: Whether each line is a row, whatever quotes stand in it.
        skipped: Lines before the names.
        commented: Whether the line of names begins with a ``#``.
    """

    separator: str = ","
    quote: str = '"'
    ignores_quotes: bool = False
    skipped: int = 0
    commented: bool = False

    def rows(self, data: bytes) -> Iterator[tuple[int, list[str]]]:
        """Yield the line number and the cells of every row that is not empty, first of the names of columns."""
        lines: Iterator[str] = islice(decode_lines(io.BytesIO(data), _LONGEST_LINE), self.skipped, None)
        lines = (line.lstrip("\ufeff") for line in lines)  # in files that were put together
        if self.commented:
            lines = (line.lstrip("# ") if number == 0 else line for number, line in enumerate(lines))
        return self.parse_lines(lines)

    def parse_lines(self, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        by_spaces = self.separator == " "
        text_lines = (line.strip(" \n") + "\n" for line in lines) if by_spaces else lines
        if self.ignores_quotes:
            for number, line in enumerate(text_lines, self.skipped + 1):
                if line.strip():
                    yield number, [_unquote(cell.strip()) for cell in line.rstrip("\n").split(self.separator)]
            return
        reader = csv.reader(
            text_lines,
            delimiter=self.separator,
            quotechar=self.quote,
            strict=True,
            skipinitialspace=self.separator != "\t",
        )
        last_line = 0
        for row in reader:
            if row:
                yield self.skipped + last_line + 1, list(map(_strip_cell, row))
            last_line = reader.line_num


_RULE = re.compile(r"[-=+:|]{3,}")  # a line that is drawn, as in Markdown and by databases
_PROTECTED = re.compile(r'="([^"]*)"')  # as tables for Excel keep 0001 from becoming 1


def _strip_cell(cell: str) -> str:
    cell = cell.strip()
    return _PROTECTED.sub(r"\1", cell) if cell[:2] == '="' and _PROTECTED.fullmatch(cell) else cell


def _unquote(cell: str) -> str:
    is_quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"') if is_quoted else cell


def read_separated(data: bytes, where: str, is_picture: ColumnTest) -> Separated:
    """Read a table of separated text, whose separator, quotes and header are detected.

    Args:
        data: The file's bytes.
        where: Name of the file in errors.
        is_picture: Whether a column, by its name, names pictures; the line with such a column is the header.

    Raises:
        DataError: The text is no table.
    """
    try:
        head = list(islice(decode_lines(io.BytesIO(data), _LONGEST_LINE), _LOOKED_AT))
        _check_is_table(head, where)
        table_format, notes = _detect_format(head, is_picture)
        table_format = _detect_plain_quotes(data, table_format)
        rows = table_format.rows(data)
        first, names = next(rows, (1, []))
    except NotTextError as error:
        raise DataError(f"cannot read {where}: {error}") from None
    except csv.Error as error:
        raise _quote_error(where, table_format, 1, error) from None
    if not any(names):
        fault = "begins with empty cells" if names else "is empty"
        raise DataError(f"{where} {fault}, expected a line with the names of columns, file_name among them")
    if table_format.separator != ",":
        notes.append(f"its columns are separated by {_separator_name(table_format.separator)}")
    if _has_row_numbers(table_format, head, len(names)):
        names = ["", *names]
    table = Separated(names, iter(()), notes)
    table.rows = _check_rows(rows, table, table_format, where, first, is_picture)
    return table


def _check_is_table(head: Sequence[str], where: str) -> None:
    """Refuse other kinds of text in files called .csv or .txt."""
    first = next((line.lstrip().casefold() for line in head if line.strip()), "")
    if first.startswith(("<!doctype", "<html", "<?xml", "<table", "<head", "<svg")):
        raise DataError(
            f"{where} is a web page or XML, no separated text; save the table as CSV (UTF-8), or load it again: pages "
            "that ask for a login are saved so"
        )
    if first.startswith(('{"', "[{", '["')) or first.strip() in ("{", "["):
        raise DataError(f"{where} begins as JSON does; call it .json, or .jsonl if every line is a record")


def _has_row_numbers(table_format: _Format, head: Sequence[str], number: int) -> bool:
    """Return whether rows begin with their own number without a name for it, as R's write.table writes."""
    try:
        rows = [row for _, row in islice(table_format.parse_lines(head[table_format.skipped :]), 1, 6)]
    except csv.Error:
        return False
    numbers = [str(place) for place in range(1, len(rows) + 1)]
    return len(rows) > 1 and [row[0] for row in rows] == numbers and all(len(row) == number + 1 for row in rows)


def _separator_name(separator: str) -> str:
    return SEPARATORS.get(separator, f"'{printable(separator)}'")


def _detect_format(head: Sequence[str], is_picture: ColumnTest) -> tuple[_Format, list[str]]:
    """Detect the format of a table by its first lines; return it with notes."""
    notes: list[str] = []
    place = next((number for number, line in enumerate(head) if line.strip()), 0)
    first = head[place].strip("\n").strip('"') if head else ""
    separators = list(SEPARATORS)
    if first.lower().startswith("sep=") and len(first) <= 5:
        separators = [first[4:] or "\t"]
        notes.append(f"its first line, '{printable(first)}', is Excel's and says what parts its columns")
        place += 1
    start = place
    while place < len(head) and (not head[place].strip() or _is_comment(head[place], separators, is_picture)):
        place += 1
    comments = sum(bool(line.strip()) for line in head[start:place])
    if comments:
        notes.append(f"{comments} comment{'s' * (comments > 1)} (#) before its first row")
    skipped = next((n for n, line in enumerate(head[place:_TITLES]) if _is_header(line, separators, is_picture)), 0)
    if skipped:
        notes.append(
            f"{skipped} line{'s' * (skipped > 1)} above the names of columns {'are' if skipped > 1 else 'is'} left out"
        )
    place += skipped
    commented = place < len(head) and head[place].startswith("#")
    lines = [head[place].lstrip("# "), *head[place + 1 :]] if commented else list(head[place:])
    forms = [_Format(sep, quote, skipped=place, commented=commented) for quote in "\"'" for sep in separators]
    candidates = [
        (table_format, len(names))
        for table_format in forms
        if any(map(is_picture, names := _column_names(table_format, lines)))
    ]
    if candidates:
        return _detect_single_quotes(
            next((table_format for table_format, number in candidates if number > 1), candidates[0][0]), lines
        ), notes
    return max(forms[: len(separators)], key=lambda table_format: _share_of_even_rows(table_format, lines)), notes


def _is_comment(line: str, separators: Sequence[str], is_picture: ColumnTest) -> bool:
    """Return whether a line is a comment, and not the names of columns after a ``#``."""
    return line.startswith("#") and not _is_header(line, separators, is_picture)


def _is_header(line: str, separators: Sequence[str], is_picture: ColumnTest) -> bool:
    """Return whether a line names a column that is needed."""
    bare = line.lstrip("# ")
    return any(any(map(is_picture, _column_names(_Format(sign), [bare]))) for sign in separators)


def _column_names(table_format: _Format, lines: Sequence[str]) -> list[str]:
    try:
        return next(table_format.parse_lines(lines), (0, []))[1]
    except csv.Error:
        return []


def _share_of_even_rows(table_format: _Format, lines: Sequence[str]) -> float:
    """Return the share of lines with as many cells as the first; 0 if that has one cell, or a line is unreadable."""
    try:
        sizes = [len(row) for _, row in table_format.parse_lines(lines)]
    except csv.Error:
        return 0
    return sum(size == sizes[0] for size in sizes) / len(sizes) if sizes and sizes[0] > 1 else 0


def _detect_single_quotes(table_format: _Format, lines: Sequence[str]) -> _Format:
    """Return the format with single quotes around cells, if the rows show that they are used so."""
    single_quoted = _Format(table_format.separator, "'", skipped=table_format.skipped, commented=table_format.commented)
    if not any(re.search(rf"(^|{re.escape(table_format.separator)}) *'", line) for line in lines):
        return table_format
    all_begin = len(lines) > 1 and all(line.startswith("'") for line in lines[1:] if line.strip())
    if (all_begin or _share_of_even_rows(table_format, lines) < 1) and _share_of_even_rows(single_quoted, lines) == 1:
        return single_quoted
    return table_format


def _detect_plain_quotes(data: bytes, table_format: _Format) -> _Format:
    """Return the format in which quotes are letters, if reading them as quotes fails."""
    if table_format.separator not in "\t|^" or table_format.quote.encode() not in data:
        return table_format
    try:
        rows = table_format.rows(data)
        _, names = next(rows, (0, []))
        if all(len(row) == len(names) for _, row in rows):
            return table_format
    except csv.Error:
        pass
    return _Format(
        table_format.separator, ignores_quotes=True, skipped=table_format.skipped, commented=table_format.commented
    )


def _quote_error(where: str, table_format: _Format, line: int, error: csv.Error) -> DataError:
    problem = str(error)
    if "field larger" in problem:
        return DataError(f"{where} has a cell of more than {csv.field_size_limit():,} letters behind line {line:,}; "
                         "check the quotes there")  # fmt: skip
    return DataError(
        f"{where} has a quote {table_format.quote} in or behind line {line:,} that is not closed, or is followed by a "
        f"text; check it: a cell in quotes has its own ones doubled ({table_format.quote * 2})"
    )


def _check_rows(
    rows: Iterator[tuple[int, list[str]]],
    table: Separated,
    table_format: _Format,
    where: str,
    line: int,
    is_picture: ColumnTest,
) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with as many cells as there are names; leave out empty rows and totals at the end."""
    totals: list[tuple[int, list[str]]] = []
    number, folded = len(table.names), [name.casefold() for name in table.names]
    places = [place for place, name in enumerate(table.names) if is_picture(name)]
    try:
        for line, row in rows:
            if not any(row):
                table.left_out["in which every cell is empty"] += 1
            elif row[0].startswith("#") and (len(row) != number or not any(row[1:])):
                table.left_out["that are comments (#)"] += 1
            elif all(not cell or _RULE.fullmatch(cell) for cell in row):
                table.left_out["that are drawn lines"] += 1
            elif row == table.names or [cell.casefold() for cell in row] == folded:
                table.left_out["that name the columns again"] += 1
            else:
                row = _fit_row_length(row, table.names, line, table_format, where)
                if not _is_total(row, places):
                    yield from totals
                    totals = []
                    yield line, row
                else:
                    totals.append((line, row))
    except NotTextError as error:
        raise DataError(f"cannot read {where}: {error}") from None
    except csv.Error as error:
        raise _quote_error(where, table_format, line + 1, error) from None
    if totals:
        table.left_out["of totals"] += len(totals)


def _is_total(row: list[str], places: Sequence[int]) -> bool:
    """Return True if a row is named a total and names no picture."""
    first = next(filter(None, row)).casefold().rstrip(" :")
    return first in _TOTALS and all(row[place].casefold().rstrip(" :") in ("", *_TOTALS) for place in places)


def _fit_row_length(row: list[str], names: Sequence[str], line: int, table_format: _Format, where: str) -> list[str]:
    number = len(names)
    if len(row) > number and not any(row[number:]):
        return row[:number]
    if len(row) < number and not any(names[len(row) :]):
        return [*row, *[""] * (number - len(row))]
    if len(row) == number:
        return row
    separator_name, sign = _separator_name(table_format.separator), table_format.separator
    if len(row) > number:
        advice = (
            f"put cells with {separator_name} into quotes"
            if not table_format.ignores_quotes
            else f"take {separator_name} out of its cells"
        )
    else:
        advice = f"put the missing '{printable(sign)}' there, or remove the line" if sign.strip() else "fix the line"
    cells = f"{len(row)} cell{'s' * (len(row) > 1)}"
    raise DataError(
        f"{where} has {cells} in line {line:,} ('{printable(sign.join(row), 60)}'), expected {number} as in its first "
        f"line, separated by {separator_name}; {advice}"
    )
