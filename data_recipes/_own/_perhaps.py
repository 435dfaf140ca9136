"""Files beside pictures that may be the table, which nobody has named: said, with what to type."""

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from mmgen.data_recipes._own._cells import Cell
from mmgen.data_recipes._own._files import Files, listed
from mmgen.data_recipes._own._tables import ALL_ENDINGS, read_table
from mmgen.errors import MmgenError
from mmgen.foreign import CannotReadError
from mmgen.parsing import printable

__all__ = ["perhaps_tables"]

_BOOKS = (".xlsx", ".xls", ".ods", ".numbers")
_PACKINGS = (".gz", ".zip", ".bz2", ".xz", ".zst")
_ONE_EACH = (".txt", ".caption", ".json")
_MOST_LOOKED_AT = 16
_MOST_BYTES = 2**24
_ROWS = 20
_HEAD = 4096  # bytes


def perhaps_tables(files: Files, pictures: Sequence[str]) -> list[str]:
    """Sentences about files that name the pictures, about workbooks, and about texts with the names of pictures.

    Args:
        files: All files.
        pictures: Those that are pictures.
    """
    stems = {PurePosixPath(name).stem for name in pictures}
    bases = {PurePosixPath(name).name for name in pictures} | stems
    candidates = [name for name in files.names if PurePosixPath(name).suffix.lower() in ALL_ENDINGS]
    each = [name for name in files.names if name.lower().endswith(_ONE_EACH) and PurePosixPath(name).stem in stems]
    said: list[str] = []
    if len(each) > len(pictures) // 2:
        candidates = [name for name in candidates if name not in {*each}]
        said.append(
            f"{listed(each)} may say something of one picture each, and are not read: make one table of them, "
            "metadata.csv, with the columns file_name and text"
        )
    candidates.sort(key=lambda name: (name.count("/"), name))
    for name in candidates[:_MOST_LOOKED_AT]:
        if (found := _looked_at(files, name, bases)) is not None:
            said.append(found)
    for name in files.names:
        stem, ending = PurePosixPath(name.lower()).stem, PurePosixPath(name.lower()).suffix
        if "/" not in name and (ending in _BOOKS or (ending in _PACKINGS and stem.endswith(ALL_ENDINGS))):
            advice = "save it as metadata.csv (CSV UTF-8)" if ending in _BOOKS else "unpack it"
            said.append(f"{listed([name])} may be the table, which is not read so: {advice}")
    return said


def _looked_at(files: Files, name: str, bases: set[str]) -> str | None:
    """What to type if a file is a table that names pictures, and why it cannot be one if it only looks so."""
    try:
        data = files.read(name, _MOST_BYTES)
    except CannotReadError:
        return None
    try:
        columns = read_table(data, name, lambda column: False).columns
    except MmgenError as error:
        words = re.split(r"[^\w.-]+", data[:_HEAD].decode("utf-8", "replace").replace("\0", ""))
        return f"{listed([name])} may be the table, but {error}" if bases & {*words} else None
    column = next((column for column, cells in columns.items() if _name_pictures(cells, bases)), None)
    if column is None:
        return None
    if PurePosixPath(column).name in bases:
        return f"{listed([name])} may be the table: write a line with names of columns above it, file_name among them"
    where = name if files.path.is_file() else str(files.path / (files.within + name))
    option = "" if column == "file_name" else f" --image-column {shlex.quote(column)}"
    return f"{printable(name, 80)} may be the table: --metadata {shlex.quote(where)}{option}"


def _name_pictures(cells: Sequence[Cell], bases: set[str]) -> bool:
    """Whether the first cells name pictures, with or without folders and endings."""
    names = {PurePosixPath(cell.replace("\\", "/").partition("#")[0]).name if cell else "" for cell in cells[:_ROWS]}
    return len(names) > 1 and names <= bases
