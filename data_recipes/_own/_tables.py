"""Tables about pictures: separated text, JSON, Parquet, as texts by column. Nothing in a table is code."""

import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePath
from typing import Any

from mmgen.core.errors import DataError
from mmgen.core.parsing import MalformedError, parse_json, printable
from mmgen.core.plain_text import NotTextError, decode_lines, decode_text
from mmgen.data_recipes._own._cells import Cell, Columns, to_cell, to_texts
from mmgen.data_recipes._own._files import shell_quoted
from mmgen.data_recipes._own._parquet import read_parquet
from mmgen.data_recipes._separated import read_separated

__all__ = ["ALL_ENDINGS", "ENDINGS", "MOST_BYTES", "Table", "read_table"]

ENDINGS = (".csv", ".jsonl", ".parquet")
"""Endings of tables named metadata."""
_TEXT, _LINES, _JSON = (".csv", ".tsv", ".tab", ".txt"), (".jsonl", ".ndjson"), (".json",)
ALL_ENDINGS = (*_TEXT, *_LINES, *_JSON, ".parquet")
"""Endings of tables that the user may name."""

MOST_BYTES = 2**28
_MOST_COLUMNS = 1000
_MOST_CELLS = 2**24  # some 100 bytes each in memory, if all of them are different
_NAMED_BY_PANDAS = re.compile(r"Unnamed: \d+(\.\d+)*|__index_level_\d+__")
_RUN = 5  # rows at least, on average, of each table
_OF_FILE = re.compile(r"\.(png|jpe?g|gif|webp|bmp|p[pgbn]m)$", re.IGNORECASE)
_NUMBERED = re.compile(r"\S\.\w+#\d+$")  # Flickr8k's names of pictures

Rows = Iterator[tuple[int, Sequence[Any]]]
"""The place in the file of each row, and a value for each column."""


@dataclass
class Table:
    """Columns of a table of n rows, with notes on it.

    Attributes:
        columns: Cells by column; the first of several texts.
        several: All texts of cells with several, by column and row.
        places: Number of each row's line or row in the file [n].
        unit: "line" or "row".
        notes: Lines for people on the file's form.
        left_out: Phrases on what is left out.
    """

    columns: Columns
    several: dict[str, dict[int, tuple[str, ...]]] = field(default_factory=dict)
    places: list[int] = field(default_factory=list)
    unit: str = "line"
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def describe_row(self, row: int) -> str:
        """Describe a row's place in the file for errors."""
        return f"{self.unit} {self.places[row]:,}"


def read_table(
    data: bytes, where: str, is_picture: Callable[[str], bool] = "file_name".__eq__, ignore: Collection[str] = ()
) -> Table:
    """Read a table (CSV, JSON, Parquet ...) in the format that its ending names.

    Args:
        data: The file's bytes.
        where: Name of the file.
        is_picture: Whether a column, by its name, names pictures.
        ignore: Columns that are not read, whose cells are None.

    Raises:
        DataError: The table is malformed or too large.
        UsageError: It is Parquet, and pyarrow is not installed.
    """
    if data.count(b"\n") + data.count(b"\r") > _MOST_CELLS and not where.lower().endswith(".parquet"):
        raise DataError(f"{where} has more than {_MOST_CELLS:,} lines; leave out rows, or take another table")
    result = Table({})
    ending = PurePath(where).suffix.lower()
    add_notes: Callable[[], None] = lambda: None  # noqa: E731
    if ending in _LINES:
        names, rows = _read_json_lines(data, where)
    elif ending in _JSON:
        names, rows = _read_json(data, where)
        result.unit = "row"
    elif ending == ".parquet":
        names, rows = read_parquet(data, where, MOST_BYTES, _MOST_CELLS, ignore)
        result.unit = "row"
    else:
        names, rows, add_notes = _read_text(data, where, is_picture, result)
    column_names = [name or f"\0{number}" for number, name in enumerate(names)]
    _check_column_names(column_names, where)
    _fill_columns(result, column_names, rows, where, {*ignore})
    add_notes()
    if result.unit == "line" and "\ufffd".encode() in data:
        result.notes.append("it holds the sign \ufffd, which stands for letters that an earlier program could not read")
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
    """Drop columns without a name that are empty or number the rows."""
    empty = 0
    for number, name in enumerate(names, 1):
        nameless = name.startswith("\0")
        if not nameless and not _NAMED_BY_PANDAS.fullmatch(name):
            continue
        cells = [cell for cell in result.columns[name] if cell is not None]
        if not cells and nameless:
            empty += 1
        elif len(cells) == len(result.places) and _are_row_numbers(cells):
            called = "" if nameless else f" ('{name}')"
            result.left_out.append(f"column {number}{called}, which has no name and numbers the rows")
        elif nameless:
            raise DataError(
                f"{where} has no name for column {number} ('{printable(cells[0], 40)}'); name it, or leave it out"
            )
        else:
            continue
        del result.columns[name]
        result.several.pop(name, None)
    if empty:
        result.left_out.append(f"{empty} column{'s' * (empty > 1)} without a name in which every cell is empty")


def _are_row_numbers(cells: Sequence[str]) -> bool:
    """Return whether all cells are whole numbers, each once, or starting again and again as in joined tables.

    Example:
        >>> columns = (["3", "1", "2"], ["0.0", "1.0"], [*"0123401234"], ["0", "1", "0", "1"])
        >>> [_are_row_numbers(cells) for cells in columns]
        [True, True, True, False]
    """
    whole = [cell.removesuffix(".0") for cell in cells]
    if not all(map(str.isdecimal, whole)):
        return False
    numbers = list(map(int, whole))
    starts = [place for place, number in enumerate(numbers) if not place or number != numbers[place - 1] + 1]
    in_runs = len(starts) * _RUN <= len(numbers) and {numbers[place] for place in starts} <= {numbers[0]}
    return len(set(numbers)) == len(numbers) or (in_runs and numbers[0] < 2)


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


def _read_text(
    data: bytes, where: str, is_picture: Callable[[str], bool], result: Table
) -> tuple[list[str], Rows, Callable[[], None]]:
    """Return columns and rows of separated text, and a function that adds notes once the rows are read."""
    table = read_separated(data, where, is_picture)
    names, rows = table.names, table.rows
    if len(names) == 2 and _NUMBERED.search(names[0]) and not any(map(is_picture, names)):
        result.notes.append("it has no line of names, and is read as Flickr8k's: file_name and text")
        names, rows = ["file_name", "text"], chain([(1, names)], rows)

    def add_notes() -> None:
        result.notes += table.notes
        for what, count in table.left_out.items():
            result.left_out.append(f"{count:,} row{'s' * (count > 1)} {what}")

    return names, iter(rows), add_notes


def _read_json_lines(data: bytes, where: str) -> tuple[list[str], Rows]:
    def parse_records() -> Iterator[tuple[int, Mapping[str, Any]]]:
        try:
            for number, line in enumerate(decode_lines(io.BytesIO(data)), 1):
                if not line.strip():
                    continue
                if number == 1 and re.fullmatch(r"\s*\[\s*(\{.*)?", line, re.DOTALL):
                    raise DataError(
                        f"{where} begins as a list, as .json does; call it so and name it with --metadata, or write a "
                        "record a line"
                    )
                try:
                    row = parse_json(line, keep_out_of_bounds=True)
                except MalformedError as error:
                    raise DataError(f"{where} has no JSON in line {number:,} ({error}); fix it") from None
                yield number, _check_record(row, f"line {number:,}", where)
        except NotTextError as error:
            raise DataError(f"cannot read {where}: {error}") from None

    return _tabulate_records(parse_records, where)


def _read_json(data: bytes, where: str) -> tuple[list[str], Rows]:
    """Read a list of records, or a table of columns."""
    try:
        value = parse_json(decode_text(data), keep_out_of_bounds=True)
    except NotTextError as error:
        raise DataError(f"cannot read {where}: {error}") from None
    except MalformedError as error:
        raise DataError(f"{where} is no JSON ({error}); save it as JSON lines, .jsonl, a record a line") from None
    if isinstance(value, dict):
        value = _records_from_columns(value, where)
    if not isinstance(value, list):
        raise DataError(f'{where} is no list of records such as [{{"file_name": ...}}, ...]; save it so')
    return _tabulate_records(
        lambda: ((n, _check_record(row, f"row {n:,}", where)) for n, row in enumerate(value, 1)), where
    )


def _records_from_columns(value: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """Return the records of {"file_name": [...], ...} or of {"file_name": {"0": ...}, ...}."""
    if value.keys() >= {"images", "annotations"}:
        return _records_from_coco(value["images"], value["annotations"], where)
    if value and all(_OF_FILE.search(name) for name in value):
        raise DataError(
            f"{where} has names of files at its top ('{printable(next(iter(value)), 60)}'), expected a list of records "
            'such as [{"file_name": ..., other columns}, ...]; save it so'
        )
    columns = {name: list(cells.values()) if isinstance(cells, dict) else cells for name, cells in value.items()}
    sizes = {len(cells) if isinstance(cells, list) else -1 for cells in columns.values()}
    if len(sizes) != 1 or -1 in sizes:
        raise DataError(
            f"{where} has {', '.join(printable(name, 40) for name in list(value)[:5]) or 'nothing'} at its top, "
            'expected a list of records such as [{"file_name": ..., other columns}, ...]; save it so'
        )
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _records_from_coco(images: Any, annotations: Any, where: str) -> list[dict[str, Any]]:
    """Return the records of COCO's captions: images with id and file_name, annotations with image_id and caption."""
    try:
        files = {image["id"]: image["file_name"] for image in images}
        if len(files) < len(images):
            raise DataError(f"{where} has two images of one id; give each its own")
        orphan = next((one["image_id"] for one in annotations if one["image_id"] not in files), None)
        if orphan is not None:
            raise DataError(
                f"{where} has an annotation of the image {printable(str(orphan), 40)}, which is not among its images; "
                "remove it, or add the image"
            )
        return [{"file_name": files[one["image_id"]], "text": one["caption"]} for one in annotations]
    except (KeyError, TypeError):
        raise DataError(
            f"{where} is in COCO's form, of which only captions are read (file_name and id of images, caption and "
            "image_id of annotations); save a table of it, a row for each picture"
        ) from None


def _check_record(row: Any, place: str, where: str) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        kind = {"list": "list", "str": "text", "NoneType": "null"}.get(type(row).__name__, "number")
        raise DataError(f'{where} has a {kind} in {place}, expected {{"file_name": ..., other columns}}; fix it')
    return row


def _tabulate_records(
    records: Callable[[], Iterator[tuple[int, Mapping[str, Any]]]], where: str
) -> tuple[list[str], Rows]:
    """Convert records to columns and rows; ``records`` is called twice."""
    names: dict[str, None] = {}
    for rows, (_, row) in enumerate(records(), 1):
        names.update(dict.fromkeys(row))
        _check_column_names(list(names) if len(names) > _MOST_COLUMNS else [], where)
        _check_cell_count(rows, len(names), where)
    return list(names), ((number, [row.get(name) for name in names]) for number, row in records())
