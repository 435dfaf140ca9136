"""Tables about pictures: separated text, JSON lines, COCO's captions, Parquet. Nothing in a table is code."""

import io
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from mmgen.core.errors import DataError, UsageError
from mmgen.core.extras import how_to_install
from mmgen.core.parsing import MalformedError, OutOfBounds, parse_json, printable
from mmgen.core.plain_text import NotTextError, decode_lines, decode_text
from mmgen.data_recipes._own._files import shell_quoted
from mmgen.data_recipes._separated import read_separated
from mmgen.descriptions import normalise_text

ENDINGS = (".csv", ".jsonl", ".parquet")
"""Endings of tables named metadata."""
_TEXT = (".csv", ".tsv", ".txt", ".token")
ALL_ENDINGS = (*_TEXT, ".jsonl", ".json", ".parquet")
"""Endings of tables that the user may name."""

MOST_BYTES = 2**28
_MOST_COLUMNS = 1000
_MOST_CELLS = 2**24  # some 100 bytes each in memory, if all of them are different
_LONGEST = 2**17  # letters
_MOST_TEXTS = 1000
_AT_ONCE = 1024  # rows of Parquet

Cell = str | None
"""Text; None for an empty cell."""

Columns = dict[str, list[Cell]]
"""Cells by column; all columns have the same length."""

Several = dict[str, dict[int, tuple[str, ...]]]
"""All texts of cells with several, by column and row."""

Rows = Iterator[tuple[int, Sequence[Any]]]
"""The place in the file of each row, and a value for each column."""


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


@dataclass
class Table:
    """Columns of a table of n rows.

    Attributes:
        columns: Cells by column; the first of several texts.
        several: All texts of cells with several.
        places: Number of each row's line or row in the file [n].
        unit: "line" or "row".
        left_out: Phrases on what is left out.
    """

    columns: Columns
    several: Several = field(default_factory=dict)
    places: list[int] = field(default_factory=list)
    unit: str = "line"
    left_out: list[str] = field(default_factory=list)

    def describe_row(self, row: int) -> str:
        """Describe a row's place in the file for errors."""
        return f"{self.unit} {self.places[row]:,}"


def read_table(data: bytes, where: str, ignore: Collection[str] = ()) -> Table:
    """Read a table (CSV, JSON lines, COCO's captions, Parquet) in the format that its ending names.

    Args:
        data: The file's bytes.
        where: Name of the file.
        ignore: Columns that are not read, whose cells are None.

    Raises:
        DataError: The table is malformed or too large.
        UsageError: It is Parquet, and pyarrow is not installed.
    """
    result, separated = Table({}), None
    ending = PurePath(where).suffix.lower()
    if ending == ".parquet":
        names, rows = _read_parquet(data, where, ignore)
        result.unit = "row"
    elif data.count(b"\n") + data.count(b"\r") > _MOST_CELLS:
        raise DataError(f"{where} has more than {_MOST_CELLS:,} lines; leave out rows, or take another table")
    elif ending == ".jsonl":
        names, rows = _tabulate_records(lambda: _read_json_lines(data, where), where)
    elif ending == ".json":
        names, rows = _read_coco(data, where)
        result.unit = "row"
    else:
        separated = read_separated(data, where)
        names, rows = separated.names, separated.rows
    column_names = [name or f"\0{number}" for number, name in enumerate(names)]
    _check_column_names(column_names, where)
    _fill_columns(result, column_names, rows, where, {*ignore})
    if separated is not None:
        result.left_out += [f"{count:,} row{'s' * (count > 1)} {what}" for what, count in separated.left_out.items()]
    _drop_unnamed_columns(result, column_names, where)
    if not result.places:
        raise DataError(f"{where} has no rows, expected one for each picture; check how it was written")
    return result


def _fill_columns(result: Table, names: Sequence[str], rows: Rows, where: str, ignore: Collection[str]) -> None:
    columns: list[list[Cell]] = [[] for _ in names]
    parsed: list[dict[str, Cell]] = [{} for _ in names]  # of few values each is read and kept once
    looked_at = [(place, name) for place, name in enumerate(names) if name not in ignore]
    for number, row in rows:
        _check_cell_count(len(result.places) + 1, len(names), where)
        for place, name in looked_at:
            value = row[place]
            if isinstance(value, str) and value in parsed[place]:
                columns[place].append(parsed[place][value])
                continue
            try:
                texts = to_texts(value) if isinstance(value, list) else None
                cell = to_cell(value) if texts is None else next(iter(texts), None)
            except MalformedError as error:
                raise DataError(
                    f"{where} has in {result.unit} {number:,} of the column '{printable(name, 60)}' {error}; fix it, "
                    f"or leave the column out with --ignore {shell_quoted(name)}"
                ) from None
            if texts is not None and len(texts) > 1:
                result.several.setdefault(name, {})[len(result.places)] = texts
            if isinstance(value, str) and len(parsed[place]) < 1000:
                parsed[place][value] = cell
            columns[place].append(cell)
        result.places.append(number)
    for place, name in enumerate(names):
        result.columns[name] = columns[place] if name not in ignore else [None] * len(result.places)


def _check_cell_count(rows: int, columns: int, where: str) -> None:
    if rows * columns > _MOST_CELLS:
        raise DataError(
            f"{where} has more than {_MOST_CELLS:,} cells, {columns:,} columns of {rows:,} rows or more; leave out "
            "columns, or rows"
        )


def _drop_unnamed_columns(result: Table, names: Sequence[str], where: str) -> None:
    """Drop columns without a name that are empty or number the rows, as pandas writes them."""
    for number, name in enumerate(names, 1):
        if not name.startswith("\0"):
            continue
        cells = [cell for cell in result.columns.pop(name) if cell is not None]
        if not cells:
            result.left_out.append(f"column {number}, which has no name and no cells")
        elif len({*cells}) == len(result.places) and all(map(str.isdecimal, cells)):
            result.left_out.append(f"column {number}, which has no name and numbers the rows")
        else:
            raise DataError(
                f"{where} has no name for column {number} ('{printable(cells[0], 40)}'); name it, or leave it out"
            )


def _check_column_names(names: Sequence[str], where: str) -> None:
    if len(names) > _MOST_COLUMNS:
        raise DataError(f"{where} has {len(names):,} columns, expected at most {_MOST_COLUMNS:,}; leave some out")
    for number, name in enumerate(names, 1):
        if not name.isprintable() and not name.startswith("\0"):
            raise DataError(f"{where} has a control character in the name of column {number}; rename it")
        if names.index(name) != number - 1:
            raise DataError(
                f"{where} has two columns '{printable(name, 60)}'; rename or remove one of them, or write a line with "
                "the names of columns above it, if its first line is none"
            )


def _read_json_lines(data: bytes, where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        for number, line in enumerate(decode_lines(io.BytesIO(data)), 1):
            if not line.strip():
                continue
            row = parse_json(line, keep_out_of_bounds=True)
            if not isinstance(row, dict):
                raise MalformedError("it is no record")
            yield number, row
    except NotTextError as error:
        raise DataError(f"cannot read {where}: {error}") from None
    except MalformedError as error:
        raise DataError(
            f'{where} has no record of JSON in line {number:,} ({error}), expected {{"file_name": ..., other columns}} '
            "in each line; save it as JSON lines"
        ) from None


def _tabulate_records(
    records: Callable[[], Iterator[tuple[int, Mapping[str, Any]]]], where: str
) -> tuple[list[str], Rows]:
    """Convert records to columns and rows; ``records`` is called twice, so that they are never all in memory."""
    names: dict[str, None] = {}
    for rows, (_, row) in enumerate(records(), 1):
        names.update(dict.fromkeys(row))
        _check_column_names(list(names) if len(names) > _MOST_COLUMNS else [], where)
        _check_cell_count(rows, len(names), where)
    return list(names), ((number, [row.get(name) for name in names]) for number, row in records())


def _read_coco(data: bytes, where: str) -> tuple[list[str], Rows]:
    """Read COCO's captions: images with id and file_name, annotations with image_id and caption."""
    try:
        value = parse_json(decode_text(data), keep_out_of_bounds=True, most=MOST_BYTES)
        files = {image["id"]: image["file_name"] for image in value["images"]}
        if len(files) < len(value["images"]):
            raise DataError(f"{where} has two images of one id; give each its own")
        captions = [(one["image_id"], one["caption"]) for one in value["annotations"]]
    except NotTextError as error:
        raise DataError(f"cannot read {where}: {error}") from None
    except (MalformedError, KeyError, TypeError) as error:
        fault = str(error) if isinstance(error, MalformedError) else "it holds something else"
        raise DataError(
            f"{where} is not in COCO's form of captions ({fault}), expected "
            '{"images": [{"id", "file_name"}], "annotations": [{"image_id", "caption"}]}; save another table as JSON '
            "lines (.jsonl) or CSV (UTF-8)"
        ) from None
    orphan = next((image for image, _ in captions if image not in files), None)
    if orphan is not None:
        raise DataError(
            f"{where} has an annotation of the image {printable(str(orphan), 40)}, which is not among its images; "
            "remove it, or add the image"
        )
    return ["file_name", "text"], ((row, [files[image], text]) for row, (image, text) in enumerate(captions, 1))


def _read_parquet(data: bytes, where: str, ignore: Collection[str]) -> tuple[list[str], Rows]:
    """Read a Parquet table, whose footer is checked before any row is read; ``ignore`` is not read."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UsageError(
            f"{where} needs pyarrow, which is not installed: {how_to_install('hub')}; or save the table as metadata.csv"
        ) from None

    def damaged_error(error: Exception) -> DataError:
        return DataError(f"{where} is no table in Parquet, or damaged ({printable(str(error), 120)}); write it again")

    is_text = (pyarrow.types.is_string, pyarrow.types.is_large_string)
    try:
        # Words by number, as they are stored: a long one that every row has would else be there for every row.
        kinds = {one.name: one.type for one in ParquetFile(io.BytesIO(data)).schema_arrow}
        words = [name for name, kind in kinds.items() if name not in ignore and any(test(kind) for test in is_text)]
        file = ParquetFile(io.BytesIO(data), read_dictionary=words)
        names = list(file.schema_arrow.names)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        rows, size = file.metadata.num_rows, sum(group.total_byte_size for group in groups)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise damaged_error(error) from None
    read = [name for name in names if name not in ignore]
    _check_cell_count(rows, max(1, len(read)), where)
    if size > MOST_BYTES:
        raise DataError(f"{where} unpacks to {size:,} bytes, expected at most {MOST_BYTES:,}; leave out columns")

    def read_rows() -> Rows:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=_AT_ONCE, columns=read):
                batch.validate(full=True)  # a damaged file may name words that are not there
                arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
                nothing = [None] * batch.num_rows
                cells = [_column_values(pyarrow, arrays[name]) if name in arrays else nothing for name in names]
                for row in zip(*cells, strict=True):
                    number += 1
                    yield number, row
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise damaged_error(error) from None

    return names, read_rows()


def _column_values(pyarrow: Any, column: Any) -> list[Any]:
    if not pyarrow.types.is_dictionary(column.type):
        return list(column.to_pylist())
    words = column.dictionary.to_pylist()
    return [None if place is None else words[place] for place in column.indices.to_pylist()]
