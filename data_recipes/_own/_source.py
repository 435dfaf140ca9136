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
"""Bytes of files that one worker gets at a time, besides the last file."""

File = bytes | str
"""A file's bytes, or a string with the reason why they cannot be read."""


@dataclass
class Source(ABC):
    """Base of sources of the user's pictures: N examples with one or several pictures each.

    Attributes:
        where: Description for errors.
        names: Names of the examples [N].
        pictures: Place of each example's picture [N], by modality.
        columns: Cells by column; the first of several texts.
        several: All texts of examples with several, by column and example.
        parts: The user's part of each example [N]; None without parts.
        left_out: Sentences on what is not used.
        notes: Further lines for people.
        classes: Columns that cannot hold parts, whatever their cells.
        or_else: Clause for errors with another remedy if its parts differ from those of a column.
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
    def read_picture(self, place: Any) -> bytes:
        """Return the bytes of a picture's file."""

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Close open files."""

    def __len__(self) -> int:
        return len(self.names)

    def file_chunks(self, rows: Sequence[int], limit: int) -> Iterator[tuple[int, list[list[File]]]]:
        """Yield the examples in groups of at most ``limit``: the number of examples, and the files of each."""
        chunk: list[list[File]] = []
        size = 0
        for row in rows:
            files = [self._read_file(places[row]) for places in self.pictures.values()]
            chunk.append(files)
            size += sum(map(len, files))
            if len(chunk) >= limit or size >= _AT_ONCE_BYTES:
                yield len(chunk), chunk
                chunk, size = [], 0
        if chunk:
            yield len(chunk), chunk

    def _read_file(self, place: Any) -> File:
        try:
            return self.read_picture(place)
        except CannotReadError as error:
            return str(error)

    def sha256(self, rows: np.ndarray, digests: np.ndarray) -> str:
        """Return the SHA-256 of the content in ``rows``: names, files' ``digests``, cells, parts."""
        whole = hashlib.sha256(json.dumps([list(self.pictures), list(self.columns)]).encode())
        for row in rows.tolist():
            cells: list[Cell] = [column[row] for column in self.columns.values()]
            part = self.parts[row] if self.parts is not None else ""
            texts = {name: sorted(each[row]) for name, each in self.several.items() if row in each}
            whole.update(json.dumps([self.names[row], part, cells, *([texts] if texts else [])]).encode())
            whole.update(digests[row].tobytes())
        return whole.hexdigest()


def modality_names(columns: Sequence[str], suffix: str = "") -> dict[str, str]:
    """Return the image modality of each column, without ``suffix``; the first is "image" if none is called so.

    Example:
        >>> modality_names(["file_name", "mask_file_name"], "_file_name")
        {'file_name': 'image', 'mask_file_name': 'mask'}
    """
    modalities = {name: name.removesuffix(suffix).replace(" ", "_") if suffix else name for name in columns}
    if "image" not in modalities.values() and columns:
        modalities[columns[0]] = "image"
    for column, name in modalities.items():
        others = [other for one, other in modalities.items() if one != column]
        if not NAME.match(name) or name in ("attributes", "text", *others):
            raise UsageError(
                f"the column '{column}' would be the image modality '{name}', expected letters, digits, '_' and '-', "
                "and no name that is taken, as attributes and text are; rename the column"
            )
    return modalities
