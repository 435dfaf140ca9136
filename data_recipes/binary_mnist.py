"""Binary MNIST: handwritten digits in black and white, described by which digit they are.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5
    On the Quantitative Analysis of Deep Belief Networks (Salakhutdinov, Murray, 2008),
    https://doi.org/10.1145/1390156.1390266: pixels are drawn once, with their intensities as probabilities
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from mmgen.core.progress import Work
from mmgen.data_recipes._digits import INK, DigitRecipe, Factor, Vocabulary
from mmgen.data_recipes._sources import DIGIT_SIZE, Digits, read_amat

__all__ = ["BinaryMnist"]


class BinaryMnist(DigitRecipe):
    """MNIST digits with every pixel drawn black or white once.

    Published scores are often of one fixed draw, Larochelle and Murray's, in three files
    ``binarized_mnist_{train,valid,test}.amat``; ``amat`` takes it from there. Its files tell no labels, and their order
    is not known to be MNIST's, so that ``digit`` is unknown in all of its images: it serves models of images alone, and
    scores of log p(x).
    """

    binarise: Annotated[Literal[True], INK] = True
    """Cannot be changed: the recipe mnist keeps grey levels."""

    amat: Annotated[Path | None, Field(exclude=True)] = None
    """Folder with Larochelle and Murray's three files, to take their draw instead of one from MNIST's grey levels."""

    name: ClassVar[str] = "binary-mnist"
    vocabulary: ClassVar[Vocabulary] = {"digit": [str(digit) for digit in range(10)]}

    @field_validator("binarise", mode="before")
    @classmethod
    def _check_binarise(cls, binarise: Any) -> Any:
        if binarise is False:
            raise ValueError(
                "--grey is not for binary-mnist, which is black and white; leave it out, or make mnist with it"
            )
        if binarise == "dynamic":
            raise ValueError(
                "--dynamic is not for binary-mnist, whose pixels are drawn once; leave it out, or make mnist with it"
            )
        return binarise

    @field_validator("amat")
    @classmethod
    def _check_amat(cls, folder: Path | None, info: ValidationInfo) -> Path | None:
        if folder is not None and (info.data.get("mnist") is not None or info.data.get("source") != "mnist"):
            raise PydanticCustomError("amat", "leave it out with source and mnist, which name other digits")
        if folder is not None and info.data.get("size") != DIGIT_SIZE:
            raise PydanticCustomError("amat", "leave size out with it: its pixels are drawn already")
        return folder

    def setup_work(self) -> Work[Path] | None:
        return super().setup_work() if self.amat is None else None

    def read_sources(self) -> Digits:
        return super().read_sources() if self.amat is None else read_amat(self.amat)

    def source_factors(self) -> dict[str, Factor]:
        factors = super().source_factors()
        if self.amat is not None:
            dtype, unit, meaning = factors["source_part"]
            factors["source_part"] = (dtype, unit, f"{meaning}, 2: one of the validation digits")
            number = "number of the digit in the publisher's files, training, validation, test"
            factors["source"] = ("uint32", "", number)
        return factors
