"""MNIST: handwritten digits, described by which digit they are.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Section 5, and the authors'
    published code: pixels drawn anew in every view, 59,600 digits to train on
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._digits import DigitRecipe, Vocabulary
from mmgen.data_recipes._streams import SplitScheme, parts_with_held_out

__all__ = ["Mnist"]

_HELD_OUT = 400


class Mnist(DigitRecipe):
    """MNIST digits, resized if the canvas is not 28 x 28."""

    name: ClassVar[str] = "mnist"
    vocabulary: ClassVar[Vocabulary] = {"digit": [str(digit) for digit in range(10)]}

    def further_split_schemes(
        self, source: NDArray[np.int64], part: NDArray[np.uint8], attributes: NDArray[np.uint8], seed: int
    ) -> dict[str, SplitScheme]:
        schemes = super().further_split_schemes(source, part, attributes, seed)
        training = np.unique(source[part == 0])
        if self.binarise != "dynamic" or "official" not in schemes or len(training) < 2 * _HELD_OUT:
            return schemes
        val = np.isin(source, training[-_HELD_OUT:])
        meaning = f"the publisher's test digits; the last {_HELD_OUT} training digits are val (Burda et al., 2016)"
        return {**schemes, "official-400": (meaning, parts_with_held_out(part, val))}
