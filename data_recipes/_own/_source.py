"""A source of pictures: names, columns, parts, and the bytes of files."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mmgen.artifacts.elements import NAME
from mmgen.core.errors import UsageError
from mmgen.core.foreign import CannotReadError
from mmgen.data_recipes._own._cells import Cell, Columns

__all__ = ["Source", "modality_names"]

_AT_ONCE_BYTES = 2**25
"""Files that are in memory together for one worker, besides the last one."""

File = bytes | str
"""A file's bytes or, as a string, why they cannot be read."""


@dataclass
class Source(ABC):
    """Base of sources of N examples, each with one picture or several.

    Attributes:
        where: In words.
        names: Names of the examples [N].
        pictures: Where each example's picture is [N], by modality.
        columns: Cells by column; the first of several texts.
        several: All texts where a column says several, by column and example.
        parts: Part of each [N], where the user has divided them.
        left_out: Parts of the source that are not used, in sentences.
        notes: Further lines for people.
        classes: Columns that are known to be no parts, whatever their cells.
        or_else: End of a sentence: another remedy where its parts differ from those of a column.
    """

    where: str
    names: list[str] = field(default_factory=list)
    pictures: dict[str, list[Any]] = field(default_factory=dict)
    columns: Columns = field(default_factory=dict)
    several: dict[str, dict[int, tuple[str, ...]]] = field(default_factory=dict)
    parts: list[str] | None = None
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    or_else: str = ""

    @abstractmethod
    def read(self, place: Any) -> bytes:
        """Return the bytes of a picture's file."""

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Close open files."""

    def __len__(self) -> int:
        return len(self.names)

    def chunks(self, rows: Sequence[int], most: int) -> Iterator[tuple[int, list[list[File]]]]:
        """Yield the files of some rows at a time: their number, and for each row its files."""
        some: list[list[File]] = []
        size = 0
        for row in rows:
            files = [self._file(places[row]) for places in self.pictures.values()]
            some.append(files)
            size += sum(map(len, files))
            if len(some) >= most or size >= _AT_ONCE_BYTES:
                yield len(some), some
                some, size = [], 0
        if some:
            yield len(some), some

    def _file(self, place: Any) -> File:
        try:
            return self.read(place)
        except CannotReadError as error:
            return str(error)

    def sha256(self, rows: np.ndarray, digests: np.ndarray) -> str:
        """Hash the content of the dataset: names, files, cells, parts."""
        whole = hashlib.sha256(json.dumps([list(self.pictures), list(self.columns)]).encode())
        for row in rows.tolist():
            cells: list[Cell] = [column[row] for column in self.columns.values()]
            part = self.parts[row] if self.parts is not None else ""
            texts = {name: sorted(each[row]) for name, each in self.several.items() if row in each}
            whole.update(json.dumps([self.names[row], part, cells, *([texts] if texts else [])]).encode())
            whole.update(digests[row].tobytes())
        return whole.hexdigest()


def modality_names(columns: Sequence[str], suffix: str = "") -> dict[str, str]:
    """Return the image modality of each column; the first is "image" where none is.

    Example:
        >>> modality_names(["file_name", "mask_file_name"], "_file_name")
        {'file_name': 'image', 'mask_file_name': 'mask'}
    """
    called = {name: name.removesuffix(suffix).replace(" ", "_") if suffix else name for name in columns}
    if "image" not in called.values() and columns:
        called[columns[0]] = "image"
    for column, name in called.items():
        others = [other for one, other in called.items() if one != column]
        if not NAME.match(name) or name in ("attributes", "text", *others):
            raise UsageError(
                f"the column '{column}' would be the image modality '{name}', expected a name of letters, digits, '_' "
                "and '-' that nothing else has, such as attributes and text; rename the column"
            )
    return called
