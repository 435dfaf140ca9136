"""Elements of a dataset file: names, factors, places of modalities."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts.hdf5 import explain_errors, read_text, require_hard_link
from mmgen.modalities import ROWS

FILLED = "filled_from"
"""Factor of pictures that ``mmgen fill-gaps`` has added: the row that each began from, -1 for real pictures."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}\Z")


@dataclass(frozen=True)
class FactorInfo:
    """Name, type, unit and meaning of a generative factor, which has a number or an array for each example.

    Attributes:
        name: Factor name.
        dtype: Number type.
        unit: Its unit ("degree", "pixel"; "" for none).
        meaning: What it is, in words.
        shape: Axes of one example's value; () for a number.
    """

    name: str
    dtype: np.dtype
    unit: str
    meaning: str
    shape: tuple[int, ...] = ()


def array_path(modality: str, array: str = ROWS) -> str:
    """Return the path of a modality's array inside the file, such as "modalities/image"."""
    return f"modalities/{modality}" if array == ROWS else f"modalities/{modality}/{array}"


class FileElement:
    """A modality in an open dataset file, from which its kind reads texts and shapes.

    Args:
        item: Array or group.
        path: The file, for messages.
    """

    def __init__(self, item: Any, path: Path) -> None:
        self._item, self._path = item, path

    @property
    def location(self) -> str:
        return f"{self._path}: {self._item.name}"

    def text(self, name: str) -> str:
        return read_text(self._item, name, self._path)

    def shape(self, array: str = ROWS) -> tuple[int, ...]:
        with explain_errors(self._path, f"{self._item.name}/{array}"):
            if array != ROWS:
                require_hard_link(self._item, array, self._path)
            found = self._item if array == ROWS else self._item[array]
            return tuple(getattr(found, "shape", None) or ())
