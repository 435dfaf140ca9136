"""The tables of a folder or zip: their columns of pictures, and several rows of one picture."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from mmgen.core.errors import DataError, UsageError
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.parsing import printable
from mmgen.data_recipes._own._attributes import check_columns
from mmgen.data_recipes._own._cells import Cell, Columns
from mmgen.data_recipes._own._files import PICTURE_ENDINGS, Files, list_examples, shell_quoted, stays_inside
from mmgen.data_recipes._own._source import modality_names
from mmgen.data_recipes._own._tables import ALL_ENDINGS, ENDINGS, MOST_BYTES, Table, read_table
from mmgen.data_recipes._separated import SEPARATORS

__all__ = ["FolderTables", "NamedPictures", "is_table"]

_FILE_NAME = "file_name"
_SUFFIX = "_file_name"
_LONGEST_NAME = 1000
_BOOKS = (".xlsx", ".xls", ".ods", ".numbers")

Several = dict[str, dict[int, tuple[str, ...]]]


def is_table(name: str) -> bool:
    """Return whether a file is read as a table by default: metadata with the ending of a table, in any case."""
    path = PurePosixPath(name)
    return path.stem.casefold() == "metadata" and path.suffix.lower() in ENDINGS


@dataclass
class NamedPictures:
    """N pictures that tables name, and the cells of all tables about them.

    Attributes:
        pictures: Files [N] by modality, the picture itself first.
        columns: Cells by column; the first of several texts.
        several: All texts where there are several, by column and picture.
        notes: Lines for people.
        left_out: Parts of the tables that are left out.
    """

    pictures: dict[str, list[str]] = field(default_factory=dict)
    columns: Columns = field(default_factory=dict)
    several: Several = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


class FolderTables:
    """Reader of the tables in a folder or zip, which name pictures.

    Args:
        files: Its files.
        where: It in words.
        image_columns: Columns of pictures; by default ``file_name`` and all that end so.
        ignore: Columns that are not looked at.
    """

    def __init__(self, files: Files, where: str, image_columns: tuple[str, ...], ignore: tuple[str, ...]) -> None:
        self._files, self._where = files, where
        self._image_columns, self._ignore = image_columns, ignore
        self._differences: Counter[str] = Counter()
        self.used: set[str] = set()

    def read(self, metadata: Path | None) -> NamedPictures | None:
        """Read all tables as one; None without any.

        Args:
            metadata: The user's table; None for all tables in the source that are named metadata.

        Raises:
            DataError: A table cannot be read, or names files that are not there.
        """
        tables = self._read_tables(metadata)
        if not tables:
            return None
        named = NamedPictures()
        for where, table in tables:
            named.notes += [f"{where}: {one}" for one in table.notes]
            named.left_out += [f"{where}: {one}" for one in table.left_out]
        self._match_pictures(named, _join_tables([table for _, table in tables]))
        named.notes += [f"{count:,} names in tables {difference}" for difference, count in self._differences.items()]
        return named

    def _read_tables(self, metadata: Path | None) -> list[tuple[str, Table]]:
        """Return each table with a phrase for its name; the names of files in it are relative to the source."""
        if metadata is not None:
            self._check_table_ending(metadata)
            if not metadata.exists() and str(metadata) in self._files:  # inside of a zip, as the look at it says
                return [self._read_table_in_source(str(metadata))]
            self.used |= {name for name in self._files.names if self._files.is_file(name, metadata)}
            try:
                data = read_file(metadata, MOST_BYTES)
            except CannotReadError as error:
                raise DataError(f"cannot read {metadata}: {error}; check the path") from None
            return [
                (metadata.name, self._check_picture_names(self._parse_table(data, str(metadata)), "", str(metadata)))
            ]
        names = [name for name in self._files.names if is_table(name)]
        folders = [str(PurePosixPath(name).parent) for name in names]
        repeated = next((folder for folder, count in Counter(folders).items() if count > 1), None)
        if repeated is not None:
            both = [
                self._files.describe_file(name)
                for name, folder in zip(names, folders, strict=True)
                if folder == repeated
            ]
            raise DataError(f"there are two tables, {both[0]} and {both[1]}; remove one of them")
        return [self._read_table_in_source(name) for name in names]

    def _check_table_ending(self, metadata: Path) -> None:
        ending = metadata.suffix.lower()
        if ending not in ALL_ENDINGS:
            advice = "; save it as CSV (UTF-8)" if ending in _BOOKS else ""
            raise UsageError(
                f"--metadata got {metadata}, expected a table that ends in {', '.join(ALL_ENDINGS)}{advice}"
            )

    def _read_table_in_source(self, name: str) -> tuple[str, Table]:
        where = str(self._files.path / (self._files.common_folder + name))
        self.used.add(name)
        try:
            data = self._files.read(name, MOST_BYTES)
        except CannotReadError as error:
            raise DataError(f"cannot read {where}: {error}; write it again") from None
        folder = str(PurePosixPath(name).parent)
        return name, self._check_picture_names(
            self._parse_table(data, where), "" if folder == "." else f"{folder}/", where
        )

    def _parse_table(self, data: bytes, where: str) -> Table:
        return read_table(
            data, where, self._is_picture_column, {*self._ignore} - {*(self._image_columns or (_FILE_NAME,))}
        )

    def _is_picture_column(self, column: str) -> bool:
        if self._image_columns:
            return column in self._image_columns
        return column == _FILE_NAME or (column.endswith(_SUFFIX) and column not in self._ignore)

    def _check_picture_names(self, table: Table, folder: str, where: str) -> Table:
        """Check that columns of pictures name files inside the source, and make the names relative to it."""
        if self._image_columns:
            check_columns("--image-column", self._image_columns, table.columns)
        elif not any(map(self._is_picture_column, table.columns)):
            raise DataError(self._no_column_message(table, folder, where))
        for column in filter(self._is_picture_column, table.columns):
            for row, cell in enumerate(table.columns[column]):
                if cell is None:
                    raise DataError(
                        f"{where} has no '{column}' in {table.describe_row(row)}; name a picture there, or remove the "
                        "row"
                    )
                if not stays_inside(cell.replace("\\", "/")) or len(cell) > _LONGEST_NAME:
                    raise DataError(
                        f"{where} names {printable(cell, 80)!r} in {table.describe_row(row)}, expected a file in "
                        f"{self._where}, without '..' and no place on a machine; fix it"
                    )
            table.columns[column] = [
                str(PurePosixPath(folder + (cell or "").replace("\\", "/"))) for cell in table.columns[column]
            ]
        return table

    def _no_column_message(self, table: Table, folder: str, where: str) -> str:
        """Return the message for a table without names of pictures, with the most likely column."""
        names = list(table.columns)
        if any(self._find_file(folder + name) for name in names if stays_inside(name)):
            return (
                f"{where} has no line with the names of columns, but begins with {list_examples(names)}; write one "
                "above it, with file_name among them"
            )
        cells = table.columns[names[0]]
        sign = re.search(r"[^\w\s./\\-]", names[0]) if len(names) == 1 else None
        if sign and all(sign[0] in (cell or "") for cell in cells):
            return (
                f"{where} has one column, {list_examples(names)}, whose cells may be separated by '{sign[0]}', or be "
                f"in quotes all together, expected {', '.join(SEPARATORS.values())} between them; "
                "save it as CSV (UTF-8)"
            )
        likely_column = next(
            (name for name, cells in table.columns.items() if self._cells_name_files(cells, folder)), ""
        )
        advice = f"name the pictures with --image-column {shell_quoted(likely_column)}" if likely_column else (
            "add it, or say which column names the pictures with --image-column"
        )  # fmt: skip
        return f"{where} has no column file_name, only {list_examples(names)}; {advice}"

    def _cells_name_files(self, cells: Sequence[Cell], folder: str) -> bool:
        some = [cell for cell in cells[:20] if cell]
        return bool(some) and all(stays_inside(cell) and self._find_file(folder + cell) is not None for cell in some)

    def _match_pictures(self, named: NamedPictures, table: Table) -> None:
        """Find the file of each picture in the table, and fill in its cells from all its rows."""
        columns = [name for name in table.columns if self._is_picture_column(name)]
        columns.sort(key=lambda name: name != _FILE_NAME)  # the picture itself is the first
        if self._image_columns:
            columns = list(self._image_columns)
        modalities = modality_names(columns, _SUFFIX)
        self._differences.clear()
        missing: list[str] = []
        places: dict[str, list[str]] = {}
        for column in columns:
            matches = [self._find_file(cell or "") for cell in table.columns[column]]
            missing += [cell or "" for cell, name in zip(table.columns[column], matches, strict=True) if name is None]
            places[modalities[column]] = [name or "" for name in matches]
        if missing:
            number = f"{len(missing):,} picture{'' if len(missing) == 1 else 's'}"
            raise DataError(
                f"{number} that the table names {'is' if len(missing) == 1 else 'are'} not in {self._where}: "
                f"{list_examples(missing)}; {self._missing_file_advice(len(missing) == len(table.places))}"
            )
        rows: dict[str, list[int]] = defaultdict(list)
        for row, name in enumerate(places["image"]):
            rows[name].append(row)
        named.pictures = {"image": list(rows)}
        for modality, files in places.items():
            named.pictures[modality] = [files[those[0]] for those in rows.values()]
            other = next((those for those in rows.values() if len({files[row] for row in those}) > 1), None)
            if other is not None:
                raise DataError(
                    f"the table names '{printable(places['image'][other[0]], 80)}' in {len(other)} rows with different "
                    f"pictures as {modality}; leave one of them"
                )
        _merge_rows(named, table, columns, list(rows.values()))

    def _missing_file_advice(self, is_all: bool) -> str:
        """Return advice on names in a table for which there is no file."""
        example = (
            next((name for name in self._files.names if name.lower().endswith(PICTURE_ENDINGS)), "") if is_all else ""
        )
        if example:
            return f"write them as files there are called, such as '{printable(example, 80)}', or name another folder"
        return "add them, or remove their rows"

    @cached_property
    def _files_by_stem(self) -> dict[str, list[str]]:
        by_key: dict[str, list[str]] = defaultdict(list)
        for name in self._files.names:
            by_key[name.rpartition(".")[0]].append(name)
        return by_key

    @cached_property
    def _files_by_lowercase_name(self) -> dict[str, list[str]]:
        by_key: dict[str, list[str]] = defaultdict(list)
        for name in self._files.names:
            by_key[unicodedata.normalize("NFC", name).casefold()].append(name)
        return by_key

    @cached_property
    def _files_by_base_name(self) -> dict[str, list[str]]:
        by_key: dict[str, list[str]] = defaultdict(list)
        for name in self._files.names:
            by_key[PurePosixPath(name).name].append(name)
        return by_key

    def _find_file(self, name: str) -> str | None:
        """Return the file that a cell names: of that name, relative to the top folder, or the only similar one."""
        for one in (name, name.removeprefix(self._files.common_folder)):
            for form in ("NFC", "NFD"):  # macOS takes letters with accents apart
                if (spelled := unicodedata.normalize(form, one)) in self._files:
                    return spelled
        bare, sign, number = name.rpartition("#")
        if sign and number.isdecimal() and bare in self._files:
            self._differences["end in the number of a caption (#0), which is left out"] += 1
            return bare
        for difference, candidates in (
            (
                "are spelled otherwise than their files, in upper or lower case",
                self._files_by_lowercase_name.get(name.casefold(), []),
            ),
            ("lack the ending of their files", self._files_by_stem.get(name, [])),
            ("name other folders than their files are in", self._files_by_base_name.get(PurePosixPath(name).name, [])),
        ):
            if len(candidates) == 1:
                self._differences[difference] += 1
                return candidates[0]
        return None


def _join_tables(tables: Sequence[Table]) -> Table:
    """Join tables row by row."""
    if len(tables) == 1:
        return tables[0]
    joined = Table({name: [] for table in tables for name in table.columns})
    for table in tables:
        for name, texts in table.several.items():
            shifted = {row + len(joined.places): each for row, each in texts.items()}
            joined.several.setdefault(name, {}).update(shifted)
        for name, cells in joined.columns.items():
            cells += table.columns.get(name, [None] * len(table.places))
        joined.places += table.places
    return joined


def _merge_rows(
    named: NamedPictures, table: Table, picture_columns: Sequence[str], groups: Sequence[Sequence[int]]
) -> None:
    """Merge the table rows about each picture: equal cells become one cell, different cells several texts."""
    for name, cells in table.columns.items():
        if name in picture_columns:
            continue
        texts = table.several.get(name, {})
        merged: list[Cell] = []
        for place, rows in enumerate(groups):
            first = cells[rows[0]]
            if len(rows) > 1 or rows[0] in texts:
                texts_here = [one for row in rows for one in texts.get(row, (cells[row],)) if one is not None]
                different = tuple(sorted(set(texts_here)))  # whatever the order of the rows
                first = different[0] if different else None
                if len(different) > 1:
                    named.several.setdefault(name, {})[place] = different
            merged.append(first)
        named.columns[name] = merged
    more = len(table.places) - len(groups)
    if more:
        named.notes.append(
            f"{len(table.places):,} rows are of {len(groups):,} pictures; rows of one picture are taken together"
        )
