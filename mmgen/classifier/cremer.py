"""The classifier of Cremer and Kushman: their image encoder, with the relation as a hint.

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Sections 5.1 and 5.4
"""

import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.classifier._classifier import ClassifierNetwork, append_planes
from mmgen.networks.cyclegan_resnet import CycleganResnet

__all__ = ["Cremer"]


class Cremer(ClassifierNetwork):
    """A residual network with instance norm and 200 features, and one linear layer to all attributes.

    CK say that the relation is passed to the classifier, not where: here as constant planes of the image, since it
    decides where to look. For a GPU: about 7 GFLOP per 112x112 image.
    """

    def __init__(self, image_shape: tuple[int, int, int], sizes: tuple[int, ...], hint_size: int = 0) -> None:
        super().__init__(image_shape, sizes, hint_size)
        channels, height, width = image_shape
        self.padding = (0, -width % 4, 0, -height % 4)
        shape = channels + hint_size, height + self.padding[3], width + self.padding[1]
        self.encoder, features = CycleganResnet().encoder(shape)
        self.head = nn.Linear(features, sum(sizes))

    def features(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        return F.relu(self.encoder(F.pad(append_planes(images, hints), self.padding)))

    def logits(self, features: Tensor) -> list[Tensor]:
        return list(self.head(features).split(self.sizes, dim=1))
