"""Tables about pictures: metadata.csv, .jsonl and .parquet, as texts by column. Nothing in a table is code."""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmgen.errors import DataError, UsageError
from mmgen.extras import how_to_install
from mmgen.free_text import one_spelling
from mmgen.parsing import Malformed, parse_json, printable

__all__ = ["ENDINGS", "MOST_BYTES", "Cell", "Columns", "cell_of", "read_table"]

Cell = str | None
"""Text; None where nothing is said."""

Columns = dict[str, list[Cell]]
"""Cells by column, all of them equally many."""

ENDINGS = (".csv", ".jsonl", ".parquet")

MOST_BYTES = 2**28
_MOST_COLUMNS = 1000
_NO_ARROW = f"needs pyarrow, which is not installed: {how_to_install('hub')}; or save the table as metadata.csv"


def cell_of(value: Any) -> Cell:
    """A value of JSON or of another table as a cell: yes and no for what is true or false, None for what is missing.

    Letters with accents are spelled one way (NFC). Signs that cannot be seen stay, as some join letters or emoji; a
    text of nothing else is missing.

    Raises:
        TypeError: It is a list, a table, bytes.
        ValueError: It holds signs that no text has; says which text.

    Example:
        >>> [cell_of(value) for value in (" red cube ", 3, 3.0, 0.25, True, None, float("nan"), "")]
        ['red cube', '3', '3', '0.25', 'yes', None, None, None]
    """
    if isinstance(value, str):
        value = one_spelling(value)
        if not value.isprintable() and any(not (sign.isprintable() or sign.isspace()) for sign in value):
            raise ValueError(repr(printable(value, 40)))
        return value.strip() or None
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return None if math.isnan(value) else f"{value:.15g}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    raise TypeError(type(value).__name__)


def read_table(data: bytes, where: str) -> Columns:
    """The columns of a table; what it is says the end of its name.

    Args:
        data: The file's bytes.
        where: The file, for messages; ends in one of :data:`ENDINGS`.

    Raises:
        DataError: It is damaged, no UTF-8, has no rows, rows of different lengths, a column twice or without a name,
            or a cell that holds more than a text or a number.
        UsageError: It needs a package that is not installed.
    """
    ending = where[where.rindex(".") :].lower()
    if ending == ".csv":
        names, rows = _csv(data, where)
    elif ending == ".jsonl":
        names, rows = _jsonl(data, where)
    else:
        names, rows = _parquet(data, where)
    found: Columns = {name: [] for name in names}
    known: dict[str, dict[str, str]] = {name: {} for name in names}
    for number, row in rows:
        for name, value in zip(names, row, strict=True):
            try:
                cell = cell_of(value)
            except TypeError as error:
                raise DataError(
                    f"{where} holds a {error} in row {number} of the column '{printable(name, 60)}', expected texts "
                    "and numbers; leave the column out, or make columns of it"
                ) from None
            except ValueError as error:
                raise DataError(
                    f"{where} holds a control character in row {number} of the column '{printable(name, 60)}' "
                    f"({error}); take it out"
                ) from None
            # Of few values each is kept once, however many rows have it.
            texts = known[name]
            if cell is not None and (cell in texts or len(texts) < 1000):
                cell = texts.setdefault(cell, cell)
            found[name].append(cell)
    if not any(found.values()):
        raise DataError(f"{where} has no rows, expected one for each picture; check how it was written")
    return found


def _check_names(names: Sequence[str], where: str) -> None:
    if len(names) > _MOST_COLUMNS:
        raise DataError(f"{where} has {len(names):,} columns, expected at most {_MOST_COLUMNS:,}; leave some out")
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise DataError(f"{where} has no name for column {number}; name it, or leave it out")
        if not name.isprintable():
            raise DataError(f"{where} has a control character in the name of column {number}; rename it")
        if names.index(name) != number - 1:
            raise DataError(f"{where} has two columns '{printable(name, 60)}'; rename or remove one of them")


def _text(data: bytes, where: str) -> io.TextIOWrapper:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{where} is UTF-16, expected UTF-8; save it as 'CSV UTF-8'")
    return io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")


def _not_utf8(where: str, row: int) -> DataError:
    return DataError(f"{where} is not UTF-8 behind row {row:,}; save it as UTF-8 (in Excel 'CSV UTF-8')")


def _csv(data: bytes, where: str) -> tuple[list[str], Iterator[tuple[int, Sequence[Any]]]]:
    if not data.strip():
        raise DataError(f"{where} is empty, expected a line with the names of columns, file_name among them")
    reader = csv.reader(_text(data, where), strict=True)

    def lines() -> Iterator[list[str]]:
        row = 0
        try:
            for line in reader:
                row += 1
                if line:
                    yield line
        except UnicodeDecodeError:
            raise _not_utf8(where, row) from None
        except csv.Error as error:
            raise DataError(
                f"{where} is no table in CSV behind row {row:,} ({printable(str(error), 80)}); check its quotes"
            ) from None

    every = lines()
    names = [name.strip() for name in next(every, [])]
    for sign, said in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and sign in names[0]:
            raise DataError(f"{where} has {said} between its columns, expected commas; save it with commas")
    _check_names(names, where)

    def rows() -> Iterator[tuple[int, Sequence[Any]]]:
        for number, row in enumerate(every, 1):
            if len(row) != len(names):
                raise DataError(
                    f"{where} has {len(row)} cells in row {number:,}, expected {len(names)} as in its first line; put "
                    "cells with commas into quotes"
                )
            yield number, row

    return names, rows()


def _jsonl(data: bytes, where: str) -> tuple[list[str], Iterator[tuple[int, Sequence[Any]]]]:
    def tables() -> Iterator[tuple[int, Mapping[str, Any]]]:
        number = 0
        try:
            for number, line in enumerate(_text(data, where), 1):
                if not line.strip():
                    continue
                try:
                    row = parse_json(line)
                except Malformed as error:
                    raise DataError(f"{where} has no JSON in line {number:,} ({error}); mend it") from None
                if not isinstance(row, dict):
                    raise DataError(
                        f"{where} has a {type(row).__name__} in line {number:,}, expected "
                        '{"file_name": ..., other columns}; mend it'
                    )
                yield number, row
        except UnicodeDecodeError:
            raise _not_utf8(where, number) from None

    names = list(dict.fromkeys(name for _, row in tables() for name in row))
    _check_names(names, where)
    return names, ((number, [row.get(name) for name in names]) for number, row in tables())


def _parquet(data: bytes, where: str) -> tuple[list[str], Iterator[tuple[int, Sequence[Any]]]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UsageError(f"{where} {_NO_ARROW}") from None

    def refused(error: Exception) -> DataError:
        return DataError(f"{where} is no table in Parquet, or damaged ({printable(str(error), 120)}); write it again")

    try:
        file = ParquetFile(io.BytesIO(data))
        size = sum(file.metadata.row_group(n).total_byte_size for n in range(file.metadata.num_row_groups))
        names = list(file.schema_arrow.names)
    except (ArrowException, OSError, ValueError) as error:
        raise refused(error) from None
    if size > MOST_BYTES:
        raise DataError(f"{where} unpacks to {size:,} bytes, expected at most {MOST_BYTES:,}; leave out columns")
    _check_names(names, where)

    def rows() -> Iterator[tuple[int, Sequence[Any]]]:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=1024):
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    number += 1
                    yield number, row
        except (ArrowException, OSError, ValueError) as error:
            raise refused(error) from None

    return names, rows()
