"""MNIST-A: one digit on a larger canvas, described by digit, scale, orientation and location.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Appendix A.2 ("VE")
"""

from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.data_recipes._digits import (
    Binarise,
    DigitRecipe,
    Factor,
    Picture,
    Vocabulary,
    paste_patches,
    transform_digits,
)
from mmgen.data_recipes._streams import (
    SplitScheme,
    random_bits,
    random_choices,
    random_uniforms,
    split_by_group,
    truncated_normal,
)

__all__ = ["MnistA"]

_PUBLISHED_CANVAS = 64  # the numbers below hold there; other canvases are scaled copies of it

_BIG, _SMALL = 0.9, 0.6
_SCALE_SD = 0.1
_SCALE_RANGE = (0.4, 1.0)

_TURN, _TURN_SD, _TURN_LIMIT = 45.0, 10.0, 90.0  # degrees, clockwise positive

# Draws of an image, by slot of its stream.
_SLOTS = {"scale": 0, "orientation": 1, "location": 2, "scale value": 3, "angle value": 4, "x value": 5, "y value": 6}


class MnistA(DigitRecipe):
    """MNIST-A: a digit on a larger canvas, with 240 combinations of attributes.

    Labels are uniform. Redrawing until a value is acceptable is done in closed form, as a truncated normal.

    ======== =====================================================================================================
    scale    big N(0.9, 0.1), small N(0.6, 0.1), within [0.4, 1.0]
    angle    clockwise N(45, 10), counterclockwise N(-45, 10) degrees, within 90 of 0; upright exactly 0
    centre   normal about the quadrant's centre moved outwards by canvas / 16 in x and y, sd canvas / 16, such that
             all of the digit's ink lies on the canvas
    ======== =====================================================================================================

    The digit is rotated, then resized (both bicubic), then placed at the nearest whole pixel; the centre factors tell
    where the middle of the ink's bounding box came to lie before binarisation, from the canvas's upper left corner.
    """

    size: Annotated[int, Field(ge=16, le=512)] = _PUBLISHED_CANVAS
    """Height and width of the canvas in pixels; the digit and its distances scale with it."""

    copies: Annotated[int, Field(ge=1)] = 10
    """Images of each source digit, each with its own labels and transformation."""

    binarise: Binarise = True
    """Draw every pixel black or white, once, with its intensity as probability; otherwise keep the grey levels.
    "dynamic" keeps them as probabilities: every view in training and evaluation is a new draw."""

    name: ClassVar[str] = "mnist-a"
    vocabulary: ClassVar[Vocabulary] = {
        "digit": [str(digit) for digit in range(10)],
        "scale": ["big", "small"],
        "orientation": ["clockwise", "upright", "counterclockwise"],
        "location": ["top-left", "top-right", "bottom-left", "bottom-right"],
    }
    random_factors: ClassVar[dict[str, Factor]] = {
        "scale": ("float32", "", "size of the digit; 1 is its published size on a 64-pixel canvas"),
        "angle": ("float32", "degree", "rotation, clockwise positive"),
        "centre_x": ("float32", "pixel", "middle of the ink's bounding box, from the left edge"),
        "centre_y": ("float32", "pixel", "middle of the ink's bounding box, from the top edge"),
    }

    def render(self, digits: NDArray[np.uint8], labels: NDArray[np.uint8], keys: NDArray[np.uint64]) -> Picture:
        draw = {name: random_bits(keys, slot) for name, slot in _SLOTS.items()}
        small = random_choices(draw["scale"], 2)
        turn = random_choices(draw["orientation"], 3)
        place = random_choices(draw["location"], 4)

        centre = np.where(small, _SMALL, _BIG)
        scale = truncated_normal(random_uniforms(draw["scale value"]), centre, _SCALE_SD, *_SCALE_RANGE)
        centre = np.choose(turn, (_TURN, 0.0, -_TURN))
        angle = truncated_normal(random_uniforms(draw["angle value"]), centre, _TURN_SD, -_TURN_LIMIT, _TURN_LIMIT)
        angle[turn == 1] = 0.0

        patches = transform_digits(digits, scale.astype(np.float64) * (self.size / _PUBLISHED_CANVAS), angle)
        width, height = np.array([patch.size for patch in patches]).T
        left = self._first_ink_pixel(random_uniforms(draw["x value"]), place % 2 == 1, width)
        top = self._first_ink_pixel(random_uniforms(draw["y value"]), place >= 2, height)

        codes = np.stack([labels, small, turn, place], axis=1).astype(np.uint8)
        factors = {
            "scale": scale,
            "angle": angle,
            "centre_x": (left + width / 2).astype(np.float32),
            "centre_y": (top + height / 2).astype(np.float32),
        }
        return paste_patches(patches, left, top, self.size), codes, factors

    def _first_ink_pixel(
        self, u: NDArray[np.float64], far: NDArray[np.bool_], extent: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the first pixel [n] of digits along one axis, in the near (left, top) or far half of the canvas."""
        step = self.size / 16
        mean = np.where(far, 12 * step + step, 4 * step - step)
        centre = truncated_normal(u, mean, step, extent / 2, self.size - extent / 2)
        return np.floor(centre - extent / 2 + 0.5).astype(np.int64)

    def further_split_schemes(
        self, source: NDArray[np.int64], part: NDArray[np.uint8], attributes: NDArray[np.uint8], seed: int
    ) -> dict[str, SplitScheme]:
        sizes = [len(values) for values in self.vocabulary.values()]
        concepts: NDArray[Any] = np.ravel_multi_index(tuple(attributes.T.astype(np.int64)), sizes)
        parts = split_by_group(concepts, int(np.prod(sizes)), seed, "compositional")
        return {"compositional": ("85/5/10 % of the 240 label combinations: no combination is in two parts", parts)}
