"""MNIST: handwritten digits, described by which digit they are."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from data_recipes._digits import DigitRecipe, Picture, Scheme, Vocabulary
from data_recipes._render import stack
from data_recipes._splits import official

__all__ = ["Mnist"]


class Mnist(DigitRecipe):
    """Digits as published, resized where the canvas is not 28 x 28."""

    binarise: bool = False
    """Draw every pixel black or white, once, with its intensity as probability; otherwise keep the grey levels."""

    name: ClassVar[str] = "mnist"
    vocabulary: ClassVar[Vocabulary] = {"digit": [str(digit) for digit in range(10)]}

    def picture(self, digits: NDArray[np.uint8], labels: NDArray[np.uint8], keys: NDArray[np.uint64]) -> Picture:
        return stack(digits, self.size), labels[:, None], {}

    def schemes(
        self, source: NDArray[np.int64], part: NDArray[np.uint8], attributes: NDArray[np.uint8], seed: int
    ) -> dict[str, Scheme]:
        return official(source, part, seed)
