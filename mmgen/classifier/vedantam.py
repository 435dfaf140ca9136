"""The classifier of Vedantam et al.: two 5x5 convolutions and one 1,024-unit head per attribute.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Sections 3 and 5.1; layer sizes as in the authors' published experiments.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.classifier._classifier import ClassifierNetwork, append_planes
from mmgen.networks import Conv2d

__all__ = ["Vedantam"]

_UNITS = 1024


class Vedantam(ClassifierNetwork):
    """Two 5x5 convolutions with max-pooling, then 1,024 units with dropout for each attribute.

    About 0.25 GFLOP per 64x64 image; with four attributes 67 million parameters, nearly all in the heads.
    Hints are added as constant planes of the image.
    """

    def __init__(self, image_shape: tuple[int, int, int], sizes: tuple[int, ...], hint_size: int = 0) -> None:
        super().__init__(image_shape, sizes, hint_size)
        channels, height, width = image_shape
        self.first = Conv2d(channels + hint_size, 32, 5, padding=2)
        self.second = Conv2d(32, 64, 5, padding=2)
        # The hidden layers of all heads side by side in one matrix: the same function as one layer per attribute,
        # and one large product is several times faster than a few small ones.
        self.hidden = nn.Linear(64 * (height // 4) * (width // 4), _UNITS * len(sizes))
        self.dropout = nn.Dropout(0.5)
        self.heads = nn.ModuleList(nn.Linear(_UNITS, size) for size in sizes)
        # The paper does not say how weights start. PyTorch's own choice shrinks the signal at every layer.
        for layer in (self.first, self.second, self.hidden):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
        # Channels last: pooling is six times faster on CPUs, a training step a quarter.
        nn.utils.convert_conv2d_weight_memory_format(self, torch.channels_last)

    def features(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        # ReLU after pooling gives the same values as before it (max commutes with a monotone function), on a quarter
        # of the numbers.
        features = F.relu(F.max_pool2d(self.first(append_planes(images, hints)), 2))
        features = F.relu(F.max_pool2d(self.second(features), 2))
        return F.relu(self.hidden(features.flatten(1)))

    def logits(self, features: Tensor) -> list[Tensor]:
        parts = self.dropout(features).split(_UNITS, dim=1)
        return [head(part) for head, part in zip(self.heads, parts, strict=True)]
