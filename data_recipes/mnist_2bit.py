"""MNIST-2bit: handwritten digits, described only by parity and magnitude.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Appendix A.3
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._digits import DigitRecipe, Factor, Picture, Vocabulary, resize_digits

__all__ = ["Mnist2bit"]


class Mnist2bit(DigitRecipe):
    """MNIST digits with parity and magnitude as attributes, and the digit as a factor."""

    name: ClassVar[str] = "mnist-2bit"
    vocabulary: ClassVar[Vocabulary] = {"parity": ["even", "odd"], "magnitude": ["below-5", "from-5"]}
    random_factors: ClassVar[dict[str, Factor]] = {"digit": ("uint8", "", "which digit the image shows")}

    def render(self, digits: NDArray[np.uint8], labels: NDArray[np.uint8], keys: NDArray[np.uint64]) -> Picture:
        codes = np.stack([labels % 2, labels >= 5], axis=1).astype(np.uint8)
        return resize_digits(digits, self.size), codes, {"digit": labels}
