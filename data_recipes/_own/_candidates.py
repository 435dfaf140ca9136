"""Notes on files beside pictures that may be tables, lists of parts or masks."""

import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from mmgen.core.errors import MmgenError
from mmgen.core.foreign import CannotReadError
from mmgen.core.parsing import printable
from mmgen.data_recipes._own._cells import Cell
from mmgen.data_recipes._own._files import Files, list_examples
from mmgen.data_recipes._own._tables import ALL_ENDINGS, read_table

__all__ = ["note_possible_masks", "note_part_lists", "note_possible_tables"]

_BOOKS = (
    ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers", ".gsheet", ".sav", ".dta", ".sas7bdat", ".rds", ".rdata",
    ".mat", ".feather", ".arrow", ".db", ".sqlite", ".sqlite3", ".pkl", ".pickle", ".npy", ".npz", ".h5", ".hdf5",
)  # fmt: skip
"""Endings of other programs' tables."""
_PACKINGS = (".gz", ".zip", ".bz2", ".xz", ".zst")
_ONE_EACH = (".txt", ".caption", ".json", ".xml", ".yaml")
_LISTS = (*ALL_ENDINGS, ".lst", ".list")
_OF_PARTS = re.compile(r"(^|[\W_\d])(train|trainval|val|valid|validation|test|testing|dev|splits?|partitions?|folds?)"
                       r"([\W_\d]|$)", re.IGNORECASE)  # fmt: skip
_MASK = (
    r"(masks?|trimaps?|segmentations?|segmentation(class|object)|annotations?|labels?|gts?|ground[-_ ]?truths?|depths?)"
)
_MASKS = re.compile(rf"[._]*{_MASK}[._]*", re.IGNORECASE)
_MASK_FILE = re.compile(rf"(.+)[-_. ]{_MASK}", re.IGNORECASE)
_MOST_TABLES = 16
_MOST_BYTES = 2**24
_ROWS = 20
_HEAD = 4096  # bytes


def note_possible_tables(files: Files, pictures: Sequence[str], read: Collection[str] = ()) -> list[str]:
    """Return notes on files that may be tables of the pictures but were not read as such."""
    stems = {PurePosixPath(name).stem for name in pictures}
    bases = {PurePosixPath(name).name for name in pictures} | stems
    candidates = [
        name for name in files.names if name not in read and PurePosixPath(name).suffix.lower() in ALL_ENDINGS
    ]
    each = [name for name in files.names if name.lower().endswith(_ONE_EACH) and _is_about_one_picture(name, bases)]
    notes: list[str] = []
    if len(each) > len(pictures) // 2:
        candidates = [name for name in candidates if name not in {*each}]
        notes.append(
            f"{list_examples(each)} may say something of one picture each, and are not read: make one table of them, "
            "metadata.csv, with the columns file_name and text"
        )
    candidates.sort(key=lambda name: (name.count("/"), name))
    for name in candidates[:_MOST_TABLES]:
        if (note := _note_possible_table(files, name, bases)) is not None:
            notes.append(note)
    packed, books, unknown = [], [], 0
    for name in (name for name in files.names if name not in {*candidates, *each, *pictures, *read}):
        stem, ending = PurePosixPath(name.lower()).stem, PurePosixPath(name.lower()).suffix
        if ending in _PACKINGS:
            packed += [name] if stem.endswith(ALL_ENDINGS) else []
            continue
        unknown += ending not in _BOOKS
        if ending in _BOOKS or (unknown <= _MOST_TABLES and len(bases & {*_first_words(files, name)}) > 1):
            books.append(name)
    for unread, advice in ((packed, "unpack it"), (books, "save it as metadata.csv (CSV UTF-8)")):
        notes += [f"{list_examples(unread)} may be the table, which is not read so: {advice}"] if unread else []
    return notes


def note_part_lists(names: Sequence[str]) -> list[str]:
    """Return notes on files whose names mean train, val or test, such as lists of pictures.

    Example:
        >>> len(note_part_lists(["train.txt", "lists/test.txt"])), note_part_lists(["labels.csv", "contest.txt"])
        (1, [])
    """
    lists = [name for name in names if name.lower().endswith(_LISTS) and _OF_PARTS.search(PurePosixPath(name).stem)]
    if not lists:
        return []
    says, is_not = ("says", "is not") if len(lists) == 1 else ("say", "are not")
    return [
        f"{list_examples(lists)} perhaps {says} which pictures are of which part, and {is_not} read so: a column split "
        "of a table does (train, val, test)"
    ]


def note_possible_masks(pictures: Sequence[str]) -> list[str]:
    """Return notes on pictures that may be masks of other pictures by their names: masks/1.png, 1_mask.png.

    Example:
        >>> len(note_possible_masks(["images/1.png", "masks/1.png"])), len(note_possible_masks(["1.png", "1_mask.png"]))
        (1, 1)
        >>> note_possible_masks(["masks/1.png", "hats/2.png"])
        []
    """
    whole: set[str] = set()
    masks: dict[str, str] = {}
    for name in pictures:
        *folders, base = PurePosixPath(name).with_suffix("").parts
        match = _MASK_FILE.fullmatch(base)
        if match or any(map(_MASKS.fullmatch, folders)):
            masks[name] = match[1] if match else base
        else:
            whole.add(base)
    masked = [name for name, stem in masks.items() if stem in whole]
    if not masked:
        return []
    return [
        f"{len(masked):,} pictures are called as masks or the like of others, {list_examples(masked)}, and are taken "
        "as pictures of their own: move them away, or name both in a table (file_name, mask_file_name)"
    ]


def _is_about_one_picture(name: str, bases: set[str]) -> bool:
    """Return whether a file is named after one picture: 1.txt, 1.png.json, 1.png.supplemental-metadata.json."""
    stem = PurePosixPath(name).stem
    return stem in bases or PurePosixPath(stem).stem in bases


def _first_words(files: Files, name: str) -> list[str]:
    """Return the first words of a file; [] if it cannot be read."""
    try:
        return _split_words(files.read(name, _MOST_BYTES))
    except CannotReadError:
        return []


def _split_words(data: bytes) -> list[str]:
    return re.split(r"[^\w.-]+", data[:_HEAD].decode("utf-8", "replace").replace("\0", ""))


def _note_possible_table(files: Files, name: str, bases: set[str]) -> str | None:
    """Return advice if a file is a table that names pictures, or the reason why it cannot be read as one."""
    try:
        data = files.read(name, _MOST_BYTES)
    except CannotReadError:
        return None
    try:
        columns = read_table(data, name, lambda column: False).columns
    except MmgenError as error:
        words = _split_words(data)
        if words[0] in bases:
            return _header_advice(name)
        return f"{list_examples([name])} may be the table, but {error}" if bases & {*words} else None
    column = next((column for column, cells in columns.items() if _cells_name_pictures(cells, bases)), None)
    if column is None:
        return None
    if PurePosixPath(column).name in bases and len(columns) == 1 and _OF_PARTS.search(PurePosixPath(name).stem):
        return None  # a list of a part
    if PurePosixPath(column).name in bases:
        return _header_advice(name)
    where = name if files.path.is_file() else str(files.path / (files.common_folder + name))
    option = "" if column == "file_name" else f" --image-column {shlex.quote(column)}"
    return f"{printable(name, 80)} may be the table: --metadata {shlex.quote(where)}{option}"


def _header_advice(name: str) -> str:
    return (
        f"{list_examples([name])} may be the table: write a line with names of columns above it, file_name among them"
    )


def _cells_name_pictures(cells: Sequence[Cell], bases: set[str]) -> bool:
    """Return whether the first cells name pictures, with or without folders and endings."""
    names = {PurePosixPath(cell.replace("\\", "/").partition("#")[0]).name if cell else "" for cell in cells[:_ROWS]}
    return len(names) > 1 and names <= bases
