"""A survey of the user's own pictures: the content of the future dataset, without pixels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._own._attributes import Attributes
from mmgen.data_recipes._own._captions import Captions
from mmgen.data_recipes._own._inspection import Inspection
from mmgen.data_recipes._splits import Parts

__all__ = ["Survey"]


@dataclass(frozen=True)
class Survey:
    """Attributes, captions, parts and notes of n pictures, from which their dataset can be made.

    Attributes:
        rows: Examples of the source that are used, int64 [n].
        pictures: Hashes, sizes and errors of all pictures of the source.
        labels: Attributes of the n examples.
        captions: Their captions; None without any.
        scheme: Name and meaning of the split.
        parts: Rows of the n examples by part.
        groups: Group of each example, int64 [n]; None without groups.
        notes: Lines for people.
        sha256: Hash of pictures and table; the dataset's header has it as ``sources_sha256``.
    """

    rows: NDArray[np.int64]
    pictures: Inspection
    labels: Attributes
    captions: Captions | None
    scheme: tuple[str, str]
    parts: Parts
    groups: NDArray[np.int64] | None
    notes: list[str]
    sha256: str = ""

    @property
    def number(self) -> int:
        """Number of examples, n."""
        return len(self.rows)

    @property
    def side(self) -> int:
        """Median of the pictures' shorter sides before they are fitted, in pixels."""
        return int(np.median(self.pictures.sizes[self.rows].min(-1)))

    @property
    def attributes(self) -> dict[str, list[str]]:
        """Names of values by attribute."""
        return self.labels.values

    @property
    def codes(self) -> NDArray[np.uint8] | None:
        """Attributes of each example, uint8 [n, A], 255 unknown; None without attributes."""
        return self.labels.table
