"""CelebA-18: faces of celebrities, described by 18 visually distinctive attributes.

References:
    Deep Learning Face Attributes in the Wild (Liu, Luo, Wang, Tang, ICCV 2015), arXiv:1411.7766
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, ICLR 2018), Appendix A.7
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mmgen.data_recipes._base import Rows
from mmgen.data_recipes._celeba._lists import Lists
from mmgen.data_recipes._celeba._recipe import CelebaRecipe

__all__ = ["Celeba18"]


class Celeba18(CelebaRecipe):
    """CelebA's aligned images with 18 of its 40 attributes, each no or yes."""

    name: ClassVar[str] = "celeba-18"

    def add_columns(self, writer: Any) -> None:
        writer.add_image("image", (3, self.size, self.size), "bytes")

    def columns(
        self,
        images: Sequence[Image.Image],
        lists: Lists,
        indices: NDArray[np.int64],
        seed: int,
        models: Mapping[str, str],
    ) -> Rows:
        return Rows({"image": self.fitted(images)})
