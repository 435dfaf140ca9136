"""MNIST: handwritten digits, described by which digit they are."""

from typing import ClassVar

from mmgen.data_recipes._digits import DigitRecipe, Vocabulary

__all__ = ["Mnist"]


class Mnist(DigitRecipe):
    """Digits as published, resized where the canvas is not 28 x 28."""

    binarise: bool = False
    """Draw every pixel black or white, once, with its intensity as probability; otherwise keep the grey levels."""

    name: ClassVar[str] = "mnist"
    vocabulary: ClassVar[Vocabulary] = {"digit": [str(digit) for digit in range(10)]}
