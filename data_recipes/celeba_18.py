"""CelebA-18: faces of celebrities, described by 18 visually distinctive attributes.

References:
    Deep Learning Face Attributes in the Wild (Liu, Luo, Wang, Tang, ICCV 2015), arXiv:1411.7766
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, ICLR 2018), Appendix A.7
"""

from typing import ClassVar

from mmgen.data_recipes._celeba._recipe import CelebaRecipe

__all__ = ["Celeba18"]


class Celeba18(CelebaRecipe):
    """CelebA's aligned images with 18 of its 40 attributes, each no or yes."""

    name: ClassVar[str] = "celeba-18"
