"""What a source of pictures offers: names, places of the pictures, columns, parts; and how its pictures are read."""

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
    """Abstract: N examples, each of one picture or several.

    Attributes:
        where: In words.
        names: Names of the examples [N].
        pictures: Where each example's picture is [N], by modality.
        columns: What is said of them; of several texts the first.
        several: All texts where a column says several, by column and example.
        parts: The part that each is in [N], where somebody has divided them.
        left_out: What of the source is not used, in sentences.
        notes: What else there is to say about it.
        classes: Columns that are known to be no parts, whatever they say.
        or_else: What else one can do where its parts are not those of a column, as the end of a sentence.
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
        """The bytes of a picture's file.

        Raises:
            CannotReadError: They cannot be read.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Let go of what is open."""

    def __len__(self) -> int:
        return len(self.names)

    def chunks(self, rows: Sequence[int], most: int) -> Iterator[tuple[int, list[list[File]]]]:
        """Files of all pictures of these rows, some rows at a time: how many, and for each row its files.

        Args:
            rows: Which examples.
            most: Rows at a time; fewer where files are large.
        """
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
        """A hash of what the dataset is made from: names, files, everything that is said, parts.

        Args:
            rows: Examples that are used [n].
            digests: sha256 of the files [N, I, 32].
        """
        whole = hashlib.sha256(json.dumps([list(self.pictures), list(self.columns)]).encode())
        for row in rows.tolist():
            cells: list[Cell] = [column[row] for column in self.columns.values()]
            part = self.parts[row] if self.parts is not None else ""
            texts = {name: sorted(each[row]) for name, each in self.several.items() if row in each}
            whole.update(json.dumps([self.names[row], part, cells, *([texts] if texts else [])]).encode())
            whole.update(digests[row].tobytes())
        return whole.hexdigest()


def modality_names(columns: Sequence[str], suffix: str = "") -> dict[str, str]:
    """What the image modalities of some columns are called, by column; the first is "image" where none is.

    Raises:
        UsageError: A name is none for a modality, or taken.

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
