"""Pictures in a folder or zip: classes and parts by folder, and tables that name files."""

from collections import Counter
from pathlib import Path, PurePosixPath

from mmgen.core.errors import DataError, UsageError
from mmgen.core.parsing import printable
from mmgen.core.pictures import FORMATS, MOST_BYTES as MOST_PICTURE_BYTES
from mmgen.data_recipes._left_out import find_thumbnails
from mmgen.data_recipes._own._candidates import note_part_lists, note_possible_masks, note_possible_tables
from mmgen.data_recipes._own._cells import Cell, to_cell
from mmgen.data_recipes._own._files import PICTURE_ENDINGS, Files, list_examples
from mmgen.data_recipes._own._folder_parts import CLASSES, parts_by_folder, parts_by_name
from mmgen.data_recipes._own._folder_tables import FolderTables
from mmgen.data_recipes._own._source import Source

__all__ = ["FolderSource"]

_ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".7z", ".rar")

_ENDINGS_SAID = 8


class FolderSource(Source):
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
        super().__init__(str(path), or_else=f", or take folders as classes with {CLASSES}")
        self._split, self._classes = split, classes
        self._image_columns, self._ignore = image_columns, ignore
        self._files = Files(path)
        try:
            self._read_source(metadata)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._files.close()

    def read_picture(self, place: str) -> bytes:
        return self._files.read(place, MOST_PICTURE_BYTES)

    def _read_source(self, metadata: Path | None) -> None:
        there = [name for name in self._files.names if name.lower().endswith(PICTURE_ENDINGS)]
        tables = FolderTables(self._files, self.where, self._image_columns, self._ignore)
        named = tables.read(metadata)
        if named is not None:
            self.pictures, self.columns, self.several = named.pictures, named.columns, named.several
            self.notes, self.left_out = [*named.notes], [*named.left_out]
        elif self._image_columns:
            raise UsageError(
                f"--image-column names '{self._image_columns[0]}', but there is no metadata.csv, .jsonl or .parquet in "
                f"{self.where}; name a table with --metadata"
            )
        else:
            small = find_thumbnails(there)
            self.pictures = {"image": sorted({*there} - {*small})}
            if small:
                self.left_out.append(
                    f"{_count_pictures(len(small))} that are thumbnails of others there: {list_examples(small)}"
                )
        if named is None or not named.columns:
            self.notes += note_possible_tables(self._files, there, tables.used)
        if not there:
            endings = [ending for ending, _ in self._count_other_endings(set())]
            inner = next((ending for ending in endings if ending in _ARCHIVES), "")
            expected = f"expected {', '.join(FORMATS)} files"
            advice = f"unpack the {inner} in it and name the folder" if inner else expected
            raise DataError(
                f"there are no pictures in {self.where}, only {list_examples(endings) or 'nothing'}; {advice}"
            )
        used = {name for places in self.pictures.values() for name in places} | tables.used
        self.names = list(self.pictures["image"])
        self._sort_examples()
        self._use_folders()
        if self.parts is None and self._split not in self.columns:
            self.notes += note_part_lists([name for name in self._files.names if name not in used])
        if named is None:
            self.notes += note_possible_masks(self.names)
        unnamed = [name for name in there if name not in used] if named is not None else []
        if unnamed:
            self.left_out.append(f"{_count_pictures(len(unnamed))} that no table names: {list_examples(unnamed)}")
        others = [f"{count:,} {ending}" for ending, count in self._count_other_endings(used | set(there))]
        if others:
            more = f" and {len(others) - _ENDINGS_SAID} other kinds" if len(others) > _ENDINGS_SAID else ""
            self.left_out.append(f"files that are no pictures of {', '.join(FORMATS)}: "
                                 f"{', '.join(others[:_ENDINGS_SAID])}{more}")  # fmt: skip
        self.left_out += [f"{count:,} {what}" for what, count in self._files.left_out.items()]

    def _count_other_endings(self, used: set[str]) -> list[tuple[str, int]]:
        """Count the endings of files that are neither pictures nor tables."""
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

    def _use_folders(self) -> None:
        """Use folders named train, val and test as parts, and other folders as classes."""
        folders = [PurePosixPath(name).parts[:-1] for name in self.names]
        if not self._classes:
            self.parts, folders = parts_by_folder(folders, self.where, self._split in self.columns)
            if self.parts is None and self._split not in self.columns:
                self.parts = parts_by_name(self.names)
        if len(set(map(len, folders))) > 1 and len({each[-1:] for each in folders}) == 1:
            folders = [each[:-1] for each in folders]  # all in one more folder of one name: n01/images, images
        deepest = max(map(len, folders))
        for level in range(deepest):
            cells = [parts[level] if len(parts) > level else None for parts in folders]
            name = "class" if deepest == 1 else f"class_{level + 1}"
            name = f"folder_{level + 1}" if name in self.columns else name
            if (
                len(set(cells)) > 1 or not self.columns
            ):  # one folder beside a table holds the pictures, and says nothing
                self.columns[name] = [self._folder_cell(cell) for cell in cells]
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


def _count_pictures(number: int) -> str:
    return f"{number:,} picture{'' if number == 1 else 's'}"
