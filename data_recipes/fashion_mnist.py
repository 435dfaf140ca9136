"""Fashion-MNIST: pictures of clothes, shoes and bags, described by which of ten articles they are.

References:
    Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms (Xiao, Rasul, Vollgraf, 2017),
    arXiv:1708.07747
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5
"""

from typing import ClassVar

from mmgen.data_recipes._digits import SmallPictureRecipe, Vocabulary
from mmgen.data_recipes._sources import CollectionName

__all__ = ["FashionMnist"]


class FashionMnist(SmallPictureRecipe):
    """Articles as published, in 256 levels of grey; ``mnist`` names the folder of Fashion-MNIST's files."""

    name: ClassVar[str] = "fashion-mnist"
    source_noun: ClassVar[str] = "picture"
    vocabulary: ClassVar[Vocabulary] = {
        "article": [
            "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot",
        ]
    }  # fmt: skip

    @property
    def collection_name(self) -> CollectionName:
        return "fashion-mnist"
