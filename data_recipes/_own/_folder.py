"""Pictures in a folder or zip: classes and parts by folder, and tables that name files."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from mmgen.core.errors import DataError, UsageError, clip
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.parsing import printable
from mmgen.core.pictures import FORMATS
from mmgen.core.plain_text import decode_text
from mmgen.data_recipes._own._attributes import check_columns
from mmgen.data_recipes._own._files import PICTURE_ENDINGS, list_examples, stays_inside
from mmgen.data_recipes._own._parts import CLASSES, parts_by_folder
from mmgen.data_recipes._own._source import FileSource, modality_names
from mmgen.data_recipes._own._tables import ALL_ENDINGS, ENDINGS, MOST_BYTES, Cell, Table, read_table, to_cell

_FILE_NAME = "file_name"
_SUFFIX = "_file_name"
_LONGEST_NAME = 1000
_ENDINGS_SAID = 8


def _is_metadata(name: str) -> bool:
    """Return whether a file is read as a table by default: metadata with the ending of a table, in any case."""
    path = PurePosixPath(name)
    return path.stem.casefold() == "metadata" and path.suffix.lower() in ENDINGS


class FolderSource(FileSource):
    """Examples in the user's folder or zip: pictures, cells of tables, and parts.

    Args:
        path: The folder or zip.
        metadata: A table of another name or place; by default those called metadata inside.
        image_columns: The table's columns of pictures; by default ``file_name`` and all that end so.
        ignore: Columns of tables that are not looked at.
        split: The column that says the parts where the table has it, and which then decides over folders.
        classes: Whether all folders are classes, whatever they are called.
    """

    def __init__(
        self,
        path: Path,
        metadata: Path | None,
        image_columns: tuple[str, ...],
        ignore: tuple[str, ...] = (),
        split: str = "",
        classes: bool = False,
    ) -> None:
        super().__init__(path, or_else=f", or take folders as classes with {CLASSES}")
        self._image_columns, self._ignore = image_columns, ignore
        try:
            self._read_source(metadata)
            self._sort_examples()
            self._use_folders(split, classes)
        except BaseException:
            self.close()
            raise

    def _read_source(self, metadata: Path | None) -> None:
        there = [name for name in self._files.names if name.lower().endswith(PICTURE_ENDINGS)]
        tables, captions = self._read_tables(metadata), set[str]()
        if tables:
            self._match_pictures(_join_tables(list(tables.values())))
            self.left_out = [f"{name}: {one}" for name, table in tables.items() for one in table.left_out]
        elif self._image_columns:
            raise UsageError(
                f"--image-column names '{self._image_columns[0]}', but there is no metadata.csv, .jsonl or .parquet in "
                f"{self.where}; name a table with --metadata"
            )
        else:
            self.pictures = {"image": there}
            captions = self._read_captions(there)
        self.names = self.pictures["image"]
        if not self.names:
            kinds = list_examples([ending for ending, _ in self._count_endings(set())]) or "nothing"
            raise DataError(
                f"there are no pictures in {self.where}, only {kinds}; expected {', '.join(FORMATS)}: convert others, "
                "and unpack archives"
            )
        self._note_unused(there, {*tables} | captions)

    def _read_captions(self, pictures: Sequence[str]) -> set[str]:
        """Read captions beside pictures, ``1.txt`` for ``1.png``, as the column ``text``; return their files."""
        files = [str(PurePosixPath(picture).with_suffix(".txt")) for picture in pictures]
        texts: dict[str, Cell] = {}
        for file in {*files} & {*self._files.names}:
            try:
                texts[file] = to_cell(" ".join(decode_text(self._files.read(file, MOST_BYTES)).split()))
            except (CannotReadError, ValueError) as error:
                where = self._files.describe_file(file)
                raise DataError(f"cannot read {where}: {error}; save it as text (UTF-8), or remove it") from None
        if texts:
            self.columns["text"] = [texts.get(file) for file in files]
        return {*texts}

    def _note_unused(self, there: Sequence[str], tables: set[str]) -> None:
        """Note pictures that no table names, and files that are neither pictures nor read as tables."""
        used = {name for places in self.pictures.values() for name in places}
        if unnamed := [name for name in there if name not in used]:
            self.left_out.append(
                f"{len(unnamed):,} picture{'s' * (len(unnamed) > 1)} that no table names: {list_examples(unnamed)}"
            )
        others = self._count_endings({*used, *there, *tables})
        if others:
            some = ", ".join(f"{count:,} {ending}" for ending, count in others[:_ENDINGS_SAID])
            more = f" and {len(others) - _ENDINGS_SAID} other kinds" if len(others) > _ENDINGS_SAID else ""
            advice = "; --metadata takes a table of another name" if {*ALL_ENDINGS} & {*dict(others)} else ""
            self.left_out.append(f"files that are no pictures of {', '.join(FORMATS)}: {some}{more}{advice}")
        self.left_out += [f"{count:,} {what}" for what, count in self._files.left_out.items()]

    def _count_endings(self, used: set[str]) -> list[tuple[str, int]]:
        """Count the endings of the files that are not used."""
        others = (name for name in self._files.names if name not in used)
        endings = Counter(PurePosixPath(name).suffix.lower() or "without an ending" for name in others)
        return [(printable(ending, 20), count) for ending, count in endings.most_common()]

    def _sort_examples(self) -> None:
        """Sort examples by name, in whatever order a table or a folder lists them."""
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        self.names = [self.names[row] for row in order]
        self.pictures = {name: [places[row] for row in order] for name, places in self.pictures.items()}
        self.columns = {name: [cells[row] for row in order] for name, cells in self.columns.items()}
        place = {row: number for number, row in enumerate(order)}
        self.several = {name: {place[row]: one for row, one in each.items()} for name, each in self.several.items()}

    def _use_folders(self, split: str, classes: bool) -> None:
        """Use folders named train, val and test as parts, and other folders as classes."""
        folders = [PurePosixPath(name).parts[:-1] for name in self.names]
        if not classes:
            self.parts, folders = parts_by_folder(folders, self.where, split in self.columns)
        deepest = max(map(len, folders))
        for level in range(deepest):
            cells = [unicodedata.normalize("NFC", each[level]) if len(each) > level else None for each in folders]
            name = "class" if deepest == 1 else f"class_{level + 1}"
            name = f"folder_{level + 1}" if name in self.columns else name
            if (
                len(set(cells)) > 1 or not self.columns
            ):  # one folder beside a table holds the pictures, and says nothing
                classes_of = {folder: self._folder_cell(folder) for folder in dict.fromkeys(cells)}
                folders_of = {cell: folder for folder, cell in classes_of.items()}
                if other := next((one for one, cell in classes_of.items() if folders_of[cell] != one), None):
                    cell = classes_of[other]
                    raise DataError(
                        f"{self.where} has folders {clip(repr(other), 60)} and {clip(repr(folders_of[cell]), 60)}, "
                        f"which would be one class '{cell}'; rename one, or merge them"
                    )
                self.columns[name] = [classes_of[cell] for cell in cells]
                self.classes.append(name)

    def _folder_cell(self, folder: str | None) -> Cell:
        """Return a folder's name as a cell of a table."""
        try:
            return to_cell(" ".join(folder.split())) if folder else None
        except ValueError:
            raise DataError(
                f"{self.where} has a folder '{printable(folder or '', 40)}', whose name holds a control character or "
                "is no text; rename it"
            ) from None

    def _read_tables(self, metadata: Path | None) -> dict[str, Table]:
        """Return tables by name; the names of files in them are relative to the source."""
        if metadata is not None and metadata.suffix.lower() not in ALL_ENDINGS:
            raise UsageError(
                f"--metadata got {metadata}, expected a table that ends in {', '.join(ALL_ENDINGS)}; save it as CSV "
                "(UTF-8)"
            )
        if metadata is None:
            names = [name for name in self._files.names if _is_metadata(name)]
        elif metadata.exists() or str(metadata) not in self._files:
            try:
                data = read_file(metadata, MOST_BYTES)
            except CannotReadError as error:
                raise DataError(f"cannot read {metadata}: {error}; check the path") from None
            name = next((name for name in self._files.names if self._files.is_file(name, metadata)), metadata.name)
            return {name: self._parse_table(data, str(metadata), "")}
        else:
            names = [str(metadata)]  # inside of a zip
        tables: dict[str, Table] = {}
        folders: dict[str, str] = {}
        for name in names:
            where = str(self._files.path / (self._files.common_folder + name))
            folder = name.rpartition("/")[0]
            if folder in folders and metadata is None:
                raise DataError(f"there are two tables, {folders[folder]} and {where}; remove one of them")
            folders[folder] = where
            try:
                data = self._files.read(name, MOST_BYTES)
            except CannotReadError as error:
                raise DataError(f"cannot read {where}: {error}; get or write it again") from None
            tables[name] = self._parse_table(data, where, f"{folder}/" if folder and metadata is None else "")
        return tables

    def _parse_table(self, data: bytes, where: str, folder: str) -> Table:
        """Read a table, check that its columns of pictures name files inside, and make the names relative."""
        table = read_table(data, where, {*self._ignore} - {*(self._image_columns or (_FILE_NAME,))})
        if self._image_columns:
            check_columns("--image-column", self._image_columns, table.columns)
        elif _FILE_NAME not in table.columns:
            raise DataError(
                f"{where} has no column file_name in its first line, only {list_examples(list(table.columns))}; add "
                "it, or say which column names the pictures with --image-column; if these are no names of columns, "
                "save the table as CSV (UTF-8) with a line of names above them"
            )
        for column in self._picture_columns(table):
            for row, cell in enumerate(table.columns[column]):
                if cell is None:
                    raise DataError(
                        f"{where} has no '{column}' in {table.describe_row(row)}; name a picture there, or remove the "
                        "row"
                    )
                if not stays_inside(cell.replace("\\", "/")) or len(cell) > _LONGEST_NAME:
                    raise DataError(
                        f"{where} names {printable(cell, 80)!r} in {table.describe_row(row)}, expected a file in "
                        f"{self.where}, without '..' and no place on a machine; fix it"
                    )
            names = [(cell or "").replace("\\", "/") for cell in table.columns[column]]
            table.columns[column] = [str(PurePosixPath(folder + name)) for name in names]
        return table

    def _picture_columns(self, table: Table) -> list[str]:
        """Return the columns that name pictures, that of the picture itself first."""
        if self._image_columns:
            return list(self._image_columns)
        more = [name for name in table.columns if name.endswith(_SUFFIX) and name not in self._ignore]
        return [_FILE_NAME, *more]

    def _match_pictures(self, table: Table) -> None:
        """Find the file of each picture in the table, and take its cells from all its rows."""
        columns = self._picture_columns(table)
        modalities = modality_names(columns, _SUFFIX)
        files: dict[str, list[str]] = {}
        missing: dict[str, None] = {}
        for column in columns:
            cells = [cell or "" for cell in table.columns[column]]
            found = {cell: self._find_file(cell) for cell in set(cells)}
            missing |= {cell: None for cell in cells if found[cell] is None}
            files[modalities[column]] = [found[cell] or "" for cell in cells]
        if missing:
            number = "1 picture that the table names is" if len(missing) == 1 else (
                f"{len(missing):,} pictures that the table names are"
            )  # fmt: skip
            raise DataError(
                f"{number} not in {self.where}: {list_examples(list(missing))}; write each as its file is called, with "
                "its folder and ending, or remove its rows"
            )
        rows: dict[str, list[int]] = defaultdict(list)
        for row, name in enumerate(files["image"]):
            rows[name].append(row)
        for modality, names in files.items():
            self.pictures[modality] = [names[those[0]] for those in rows.values()]
            other = next((those for those in rows.values() if len({names[row] for row in those}) > 1), None)
            if other is not None:
                raise DataError(
                    f"the table names '{printable(files['image'][other[0]], 80)}' in {len(other)} rows with different "
                    f"pictures as {modality}; leave one of them"
                )
        self._merge_rows(table, columns, list(rows.values()))

    @cached_property
    def _files_by_name(self) -> dict[str, str]:
        """Files by their names, spelled one way (NFC), and by those without folders that only one file has."""
        plain = {unicodedata.normalize("NFC", name): name for name in self._files.names}
        bases = Counter(PurePosixPath(name).name for name in plain)
        alone = {base: name for name in plain if bases[base := PurePosixPath(name).name] == 1}
        return {base: plain[name] for base, name in alone.items()} | plain

    def _find_file(self, name: str) -> str | None:
        """Return the file that a cell names: at its place, or, of a name without folders, the only one so called."""
        name = unicodedata.normalize("NFC", name)
        names = (name, name.removeprefix(self._files.common_folder))
        return next((self._files_by_name[one] for one in names if one in self._files_by_name), None)

    def _merge_rows(self, table: Table, picture_columns: Sequence[str], groups: Sequence[Sequence[int]]) -> None:
        """Merge the rows about each picture: equal cells become one cell, different cells several texts."""
        for name, cells in table.columns.items():
            if name in picture_columns:
                continue
            texts = table.several.get(name, {})
            merged: list[Cell] = []
            for place, rows in enumerate(groups):
                first = cells[rows[0]]
                if len(rows) > 1 or rows[0] in texts:
                    here = [one for row in rows for one in texts.get(row, (cells[row],)) if one is not None]
                    different = tuple(sorted(set(here)))  # whatever the order of the rows
                    first = different[0] if different else None
                    if len(different) > 1:
                        self.several.setdefault(name, {})[place] = different
                merged.append(first)
            self.columns[name] = merged
        if len(table.places) > len(groups):
            self.notes.append(
                f"{len(table.places):,} rows are of {len(groups):,} pictures; rows of one picture are taken together"
            )


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
