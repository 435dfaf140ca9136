"""MultiMNIST: up to four handwritten digits on one canvas, described by the text that they spell.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5 ("WG"): 0 to 4 digits at fixed places of a 50 x 50 canvas, read from top left to bottom right
    Attend, Infer, Repeat: Fast Scene Understanding with Generative Models (Eslami, Heess, Weber, Tassa, Szepesvari,
    Kavukcuoglu, Hinton, 2016), arXiv:1603.08575: the dataset, with digits at random places
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from mmgen.data_recipes._base import Rows
from mmgen.data_recipes._digits import INK, binarise, pack_bits, resize_digits
from mmgen.data_recipes._several_digits import PARTS, DigitPools, SeveralDigitsRecipe
from mmgen.data_recipes._sources import DIGIT_SIZE
from mmgen.data_recipes._streams import random_bits, random_integers, stream_keys

if TYPE_CHECKING:
    from mmgen.artifacts import DatasetWriter

__all__ = ["Multimnist"]

_CELLS = 4
_NO_DIGIT = 255
_NO_SOURCE = 2**32 - 1

# On a canvas of 50 pixels, as in the code that WG published; other canvases are scaled copies of it.
_PUBLISHED_CANVAS = 50
_STARTS = (4, 23)  # first pixels of the cells along either axis
_SHRINKING = 1.3  # digits of 28 pixels become 21

# Draws of an image, by slot of its stream; those of the cells' digits follow.
_COUNT, _FIRST_DIGIT = 0, 1

_FACTORS: dict[str, tuple[str, str, str, tuple[int, ...]]] = {
    "count": ("uint8", "", "digits on the canvas", ()),
    "digit": ("uint8", "", f"digit in each cell, in reading order; {_NO_DIGIT} where there is none", (_CELLS,)),
    "source": (
        "uint32",
        "",
        f"number of each cell's source digit, in published order, training digits first; {_NO_SOURCE} where none is",
        (_CELLS,),
    ),
    "source_part": ("uint8", "", "0: the publisher's training digits, 1: the test digits; never both", ()),
    "centre_x": ("float32", "pixel", "middle of each digit's ink's bounding box, from the left edge", (_CELLS,)),
    "centre_y": ("float32", "pixel", "middle of each digit's ink's bounding box, from the top edge", (_CELLS,)),
}


class Multimnist(SeveralDigitsRecipe):
    """MultiMNIST: up to four digits in cells in reading order.

    How many there are is uniform in 0 .. 4. An image belongs to a part, and draws each digit, uniformly and with
    replacement, from the source digits of that part: no source digit occurs in images of two parts. Where two cells
    touch, ink adds up to at most white (WG's code redraws such images); digits are shrunk bicubically.
    """

    size: Annotated[int, Field(ge=16, le=512)] = _PUBLISHED_CANVAS
    """Height and width of the canvas in pixels; digits and cells scale with it."""

    binarise: Annotated[bool, INK] = False
    """Draw every pixel black or white, once, with its intensity as probability; otherwise keep the grey levels."""

    @field_validator("binarise", mode="before")
    @classmethod
    def _check_binarise(cls, binarise: Any) -> Any:
        if binarise == "dynamic":
            raise ValueError(
                "--dynamic is not for multimnist, whose pixels are grey or drawn once; leave it out, or make mnist so"
            )
        return binarise

    name: ClassVar[str] = "multimnist"
    vocabulary: ClassVar[tuple[str, ...]] = tuple(str(digit) for digit in range(10))

    def make_rows(
        self,
        pictures: NDArray[np.uint8],
        digit: NDArray[np.uint8],
        source: NDArray[np.uint32],
        part: NDArray[np.uint8],
        indices: NDArray[np.int64],
        seed: int,
    ) -> Rows:
        """Make the images ``indices`` [n] in stored form; runs in a worker.

        Args:
            pictures: Source digits [m, 28, 28] of all cells that have one, image by image.
            digit: Digits by image and cell [n, 4].
            source: Their numbers [n, 4].
            part: The publisher's part that an image's digits are from [n].
            indices: Numbers of the images.
            seed: Seed of the dataset.
        """
        full = digit != _NO_DIGIT
        images, centres = self._compose_canvases(pictures, full)
        factors: dict[str, NDArray[Any]] = {
            "count": full.sum(1).astype(np.uint8),
            "digit": digit,
            "source": source,
            "source_part": part,
            "centre_x": centres[..., 0],
            "centre_y": centres[..., 1],
        }
        words = np.where(full, digit, len(self.vocabulary)).astype(np.uint16)
        keys = stream_keys(seed, self.name, indices)
        stored = pack_bits(binarise(images, keys)) if self.binarise else images[:, None]
        return Rows({"image": stored, "text": words}, factors)

    def _compose_canvases(
        self, pictures: NDArray[np.uint8], full: NDArray[np.bool_]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return grey images [n, H, W], and the middle (x, y) of each digit [n, 4, 2], NaN in empty cells."""
        scale = self.size / _PUBLISHED_CANVAS
        cell = int(DIGIT_SIZE / _SHRINKING * scale)
        starts = [round(start * scale) for start in _STARTS]
        canvases = np.zeros((len(full), self.size, self.size), np.uint16)
        centres = np.full((*full.shape, 2), np.nan, np.float32)
        if not len(pictures):
            return canvases.astype(np.uint8), centres
        small = resize_digits(pictures, cell)
        owner, place = np.nonzero(full)  # of each picture
        for k in range(_CELLS):
            here = place == k
            top, left = starts[k // 2], starts[k % 2]
            canvases[owner[here], top : top + cell, left : left + cell] += small[here]
            middle = np.stack([_ink_middles(small[here].any(axis)) for axis in (1, 2)], -1)
            centres[owner[here], k] = middle + np.array([left, top], np.float32)
        return np.minimum(canvases, 255).astype(np.uint8), centres

    def choose_digits(
        self, pools: DigitPools, part: NDArray[np.int64], indices: NDArray[np.int64], seed: int
    ) -> tuple[Any, ...]:
        digits, members = pools.digits, [pools.members(code) for code in range(len(PARTS))]
        chosen, full = _draw_digits(stream_keys(seed, self.name, indices), part, members)
        digit = np.where(full, digits.labels[chosen], _NO_DIGIT).astype(np.uint8)
        source = np.where(full, chosen, _NO_SOURCE).astype(np.uint32)
        # An empty image too belongs to a part: that of the digits that it does not show.
        return digits.images[chosen[full]], digit, source, digits.part[chosen[:, 0]], indices, seed

    def add_elements(self, writer: "DatasetWriter") -> None:
        writer.add_image("image", (1, self.size, self.size), "bits" if self.binarise else "bytes")
        writer.add_text("text", self.vocabulary, _CELLS)
        for name, (dtype, unit, meaning, shape) in _FACTORS.items():
            writer.add_factor(name, dtype, unit, meaning, shape)


def _draw_digits(
    keys: NDArray[np.uint64], pool: NDArray[np.int64], members: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw a source digit for each cell from the image's pool [n, 4], and a mask of the filled cells [n, 4]."""
    count = random_integers(random_bits(keys, _COUNT), _CELLS + 1)
    random = random_bits(keys[:, None], _FIRST_DIGIT + np.arange(_CELLS))
    chosen = np.empty(random.shape, np.int64)
    for code, some in enumerate(members):
        rows = pool == code
        chosen[rows] = some[random_integers(random[rows], len(some))]
    return chosen, np.arange(_CELLS) < count[:, None]


def _ink_middles(inked: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the middle [n] between the first and the last True of each row [n, L]."""
    first, after = inked.argmax(1), inked.shape[1] - inked[:, ::-1].argmax(1)
    return ((first + after) / 2).astype(np.float32)
