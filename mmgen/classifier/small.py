"""A small judge for CPUs: three strided convolutions and a shared layer, for any canvas from 16 to 64 pixels."""

import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.classifier._base import JudgeNetwork

__all__ = ["Small"]

_CHANNELS = (16, 32, 64)
_UNITS = 192


class Small(JudgeNetwork):
    """Convolutions 4x4, 3x3, 3x3 with stride 2, a shared hidden layer with dropout, a linear head per attribute.

    About 2 MFLOP per 32x32 image.
    """

    def __init__(self, image_shape: tuple[int, int, int], sizes: tuple[int, ...]) -> None:
        super().__init__(image_shape, sizes)
        channels, height, width = image_shape
        one, two, three = _CHANNELS
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels, one, 4, stride=2, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(one, two, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(two, three, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
        )
        # A 4x4 convolution with padding 1 halves rounding down, a 3x3 one halves rounding up, twice.
        rows, columns = ((side // 2 + 3) // 4 for side in (height, width))
        self.hidden = nn.Linear(three * rows * columns, _UNITS)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(_UNITS, sum(sizes))

    def forward(self, images: Tensor) -> list[Tensor]:
        features = self.convolutions(images).flatten(1)
        logits = self.head(self.dropout(F.relu(self.hidden(features))))
        return list(logits.split(self.sizes, dim=1))
