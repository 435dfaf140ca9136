"""Pictures in a folder or zip: classes and parts by folder, and tables that name files."""

import unicodedata
from collections import Counter
from pathlib import Path, PurePosixPath

from mmgen.data_recipes._left_out import doubles
from mmgen.data_recipes._own._attributes import check_columns
from mmgen.data_recipes._own._files import PICTURES, Files, inside, listed
from mmgen.data_recipes._own._folder_parts import CLASSES, parts_by_folder, parts_by_name
from mmgen.data_recipes._own._source import Source, modality_names
from mmgen.data_recipes._own._tables import ENDINGS, MOST_BYTES, Cell, Columns, cell_of, read_table
from mmgen.errors import DataError, UsageError
from mmgen.foreign import CannotReadError, read_file
from mmgen.parsing import printable
from mmgen.pictures import FORMATS
from mmgen.pictures import MOST_BYTES as MOST_PICTURE_BYTES

__all__ = ["FolderSource"]

_ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".7z", ".rar")

_FILE_NAME = "file_name"
_SUFFIX = "_file_name"
_LONGEST_NAME = 1000
_ENDINGS_SAID = 8


class FolderSource(Source):
    """A folder or a zip.

    Args:
        path: The folder or zip.
        metadata: A table of another name or place; by default those called metadata inside.
        image_columns: The table's columns of pictures; by default ``file_name`` and all that end so.
        split: The column that says the parts where the table has it, and which then decides over folders.
        classes: Whether all folders are classes, whatever they are called.
    """

    def __init__(
        self, path: Path, metadata: Path | None, image_columns: tuple[str, ...], split: str = "", classes: bool = False
    ) -> None:
        super().__init__(str(path), or_else=f", or take folders as classes with {CLASSES}")
        self._split, self._classes = split, classes
        self._image_columns = image_columns
        self._files = Files(path)
        try:
            self._fill(metadata)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._files.close()

    def read(self, place: str) -> bytes:
        return self._files.read(place, MOST_PICTURE_BYTES)

    def _fill(self, metadata: Path | None) -> None:
        there = [name for name in self._files.names if name.lower().endswith(PICTURES)]
        table = self._table(metadata)
        if table is not None:
            self._take_table(table)
        elif self._image_columns:
            raise UsageError(
                f"--image-column names '{self._image_columns[0]}', but there is no metadata.csv, .jsonl or .parquet in "
                f"{self.where}; name a table with --metadata"
            )
        else:
            small = doubles(there)
            self.pictures = {"image": sorted({*there} - {*small})}
            if small:
                self.left_out.append(f"{_count(len(small))} that are thumbnails of others there: {listed(small)}")
        if not there:
            endings = [ending for ending, _ in self._endings(set())]
            inner = next((ending for ending in endings if ending in _ARCHIVES), "")
            advice = f"unpack the {inner} in it, or name that" if inner else f"expected {', '.join(FORMATS)} files"
            raise DataError(f"there are no pictures in {self.where}, only {listed(endings) or 'nothing'}; {advice}")
        used = {name for places in self.pictures.values() for name in places}
        self.names = list(self.pictures["image"])
        self._sort()
        self._take_folders()
        unnamed = [name for name in there if name not in used] if table is not None else []
        if unnamed:
            self.left_out.append(f"{_count(len(unnamed))} that no table names: {listed(unnamed)}")
        others = [f"{count:,} {ending}" for ending, count in self._endings(used | set(there))]
        if others:
            more = f" and {len(others) - _ENDINGS_SAID} other kinds" if len(others) > _ENDINGS_SAID else ""
            self.left_out.append(f"files that are no pictures of {', '.join(FORMATS)}: "
                                 f"{', '.join(others[:_ENDINGS_SAID])}{more}")  # fmt: skip
        self.left_out += [f"{count:,} {what}" for what, count in self._files.left_out.items()]

    def _endings(self, used: set[str]) -> list[tuple[str, int]]:
        """What other files are called, and how many; tables are read, and none of these."""
        others = (name for name in self._files.names if name not in used and not _is_table(name))
        endings = Counter(PurePosixPath(name).suffix.lower() or "without an ending" for name in others)
        return [(printable(ending, 20), count) for ending, count in endings.most_common()]

    def _sort(self) -> None:
        """Examples by name, however a table or a folder lists them."""
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        self.names = [self.names[row] for row in order]
        self.pictures = {name: [places[row] for row in order] for name, places in self.pictures.items()}
        self.columns = {name: [cells[row] for row in order] for name, cells in self.columns.items()}

    def _table(self, metadata: Path | None) -> Columns | None:
        """All tables as one, whose file names are relative to the source."""
        if metadata is not None:
            if metadata.suffix.lower() not in ENDINGS:
                raise UsageError(f"--metadata got {metadata}, expected a table that ends in {', '.join(ENDINGS)}")
            try:
                data = read_file(metadata, MOST_BYTES)
            except CannotReadError as error:
                raise DataError(f"cannot read {metadata}: {error}; check the path") from None
            return self._checked(read_table(data, str(metadata)), "", str(metadata))
        names = [name for name in self._files.names if _is_table(name)]
        folders = [str(PurePosixPath(name).parent) for name in names]
        twice = next((folder for folder, count in Counter(folders).items() if count > 1), None)
        if twice is not None:
            both = [self._files.said(name) for name, folder in zip(names, folders, strict=True) if folder == twice]
            raise DataError(f"there are two tables, {both[0]} and {both[1]}; remove one of them")
        tables = [self._read_table(name) for name in names]
        columns: Columns = {name: [] for table in tables for name in table}
        for table in tables:
            size = len(next(iter(table.values())))
            for name, cells in columns.items():
                cells += table.get(name, [None] * size)
        return columns if tables else None

    def _read_table(self, name: str) -> Columns:
        where = str(self._files.path / (self._files.within + name))
        try:
            data = self._files.read(name, MOST_BYTES)
        except CannotReadError as error:
            raise DataError(f"cannot read {where}: {error}; write it again") from None
        folder = str(PurePosixPath(name).parent)
        return self._checked(read_table(data, where), "" if folder == "." else f"{folder}/", where)

    def _is_of_pictures(self, column: str) -> bool:
        if self._image_columns:
            return column in self._image_columns
        return column == _FILE_NAME or column.endswith(_SUFFIX)

    def _checked(self, table: Columns, folder: str, where: str) -> Columns:
        """A table with columns of pictures, whose names are honest ones and relative to the source."""
        if self._image_columns:
            check_columns("--image-column", self._image_columns, table)
        elif not any(map(self._is_of_pictures, table)):
            raise DataError(
                f"{where} has no column file_name, only {listed(list(table))}; add it, or say which column names the "
                "pictures with --image-column"
            )
        for column in filter(self._is_of_pictures, table):
            for row, cell in enumerate(table[column], 1):
                if cell is None:
                    raise DataError(
                        f"{where} has no '{column}' in row {row:,}; name a picture there, or remove the row"
                    )
                if not inside(cell) or len(cell) > _LONGEST_NAME:
                    raise DataError(
                        f"{where} names {printable(cell, 80)!r} in row {row:,}, expected a file in {self.where}, with "
                        "slashes and without '..'; mend it"
                    )
            table[column] = [str(PurePosixPath(folder + (cell or ""))) for cell in table[column]]
        return table

    def _take_table(self, table: Columns) -> None:
        columns = [name for name in table if self._is_of_pictures(name)]
        columns.sort(key=lambda name: name != _FILE_NAME)  # the picture itself is the first
        if self._image_columns:
            columns = list(self._image_columns)
        called = modality_names(columns, _SUFFIX)
        missing: list[str] = []
        for column in columns:
            found = [self._found(cell or "") for cell in table[column]]
            missing += [cell or "" for cell, name in zip(table[column], found, strict=True) if name is None]
            self.pictures[called[column]] = found
        if missing:
            raise DataError(
                f"{_count(len(missing))} that the table names {'is' if len(missing) == 1 else 'are'} not in "
                f"{self.where}: {listed(missing)}; add them, or remove their rows"
            )
        first = "image"
        counts = Counter(self.pictures[first])
        name, count = counts.most_common(1)[0]
        if count > 1:
            raise DataError(
                f"the table names '{printable(name, 80)}' in {count} rows, and {sum(n > 1 for n in counts.values()):,} "
                "pictures more than once in all; keep one row for each picture"
            )
        self.pictures = {first: self.pictures[first], **self.pictures}
        self.columns = {name: cells for name, cells in table.items() if name not in columns}

    def _found(self, name: str) -> str | None:
        """The file that a table means: as it is called, or from the folder above all."""
        for one in (name, name.removeprefix(self._files.within)):
            for form in ("NFC", "NFD"):  # macOS takes letters with accents apart
                if (spelled := unicodedata.normalize(form, one)) in self._files:
                    return spelled
        return None

    def _take_folders(self) -> None:
        """Parts, where folders are called so; the others are classes."""
        folders = [PurePosixPath(name).parts[:-1] for name in self.names]
        if not self._classes:
            self.parts, folders = parts_by_folder(folders, self.where, self._split in self.columns)
            if self.parts is None and self._split not in self.columns:
                self.parts = parts_by_name(self.names)
        deepest = max(map(len, folders))
        for level in range(deepest):
            cells = [parts[level] if len(parts) > level else None for parts in folders]
            name = "class" if deepest == 1 else f"class_{level + 1}"
            name = f"folder_{level + 1}" if name in self.columns else name
            if (
                len(set(cells)) > 1 or not self.columns
            ):  # one folder beside a table holds the pictures, and says nothing
                self.columns[name] = [self._value(cell) for cell in cells]
                self.classes.append(name)

    def _value(self, folder: str | None) -> Cell:
        """What a folder's name says, as a cell of a table would."""
        try:
            return cell_of(" ".join(folder.split())) if folder else None
        except ValueError as error:
            raise DataError(
                f"{self.where} has a folder {error}, whose name holds a control character or is no text; rename it"
            ) from None


def _count(number: int) -> str:
    return f"{number:,} picture{'' if number == 1 else 's'}"


def _is_table(name: str) -> bool:
    path = PurePosixPath(name)
    return path.stem == "metadata" and path.suffix.lower() in ENDINGS
