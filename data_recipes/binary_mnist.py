"""Binary MNIST: handwritten digits in black and white, described by which digit they are.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5
    On the Quantitative Analysis of Deep Belief Networks (Salakhutdinov, Murray, 2008),
    https://doi.org/10.1145/1390156.1390266: pixels are drawn once, with their intensities as probabilities
"""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from data_recipes._digits import DigitRecipe, Picture, Scheme, Vocabulary
from data_recipes._render import stack
from data_recipes._splits import official

__all__ = ["BinaryMnist"]


class BinaryMnist(DigitRecipe):
    """Digits as published, every pixel drawn black or white once and stored."""

    binarise: Literal[True] = True
    """Cannot be changed: the grey levels are what the recipe mnist keeps."""

    name: ClassVar[str] = "binary-mnist"
    vocabulary: ClassVar[Vocabulary] = {"digit": [str(digit) for digit in range(10)]}

    def picture(self, digits: NDArray[np.uint8], labels: NDArray[np.uint8], keys: NDArray[np.uint64]) -> Picture:
        return stack(digits, self.size), labels[:, None], {}

    def schemes(
        self, source: NDArray[np.int64], part: NDArray[np.uint8], attributes: NDArray[np.uint8], seed: int
    ) -> dict[str, Scheme]:
        return official(source, part, seed)
