"""What a look at somebody's own pictures found, in numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._own._words import Captions
from mmgen.data_recipes._splits import Parts

__all__ = ["Found"]


@dataclass(frozen=True)
class Found:
    """What a look at the pictures found, for whoever chooses settings by it.

    Attributes:
        number: Examples that are used.
        side: Median of their pictures' shorter sides before they are fitted, in pixels.
        attributes: Names of values by attribute.
        codes: The attributes of each example, uint8 [N, A], 255 unknown; None where there are none.
        captions: The captions, where there are some.
        parts: Rows of the examples by part.
        sha256: Hash of pictures and table; the dataset's header has it as ``sources_sha256``.
        said: What there is to say about them.
    """

    number: int
    side: int
    attributes: dict[str, list[str]]
    codes: NDArray[np.uint8] | None
    captions: Captions | None
    parts: Parts
    sha256: str
    said: list[str]
