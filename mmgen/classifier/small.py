"""A small judge for CPUs: shape detectors whose strongest answer counts, and a coarse map of places; any canvas."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.classifier._base import JudgeNetwork

__all__ = ["Small"]

_STEM = (16, 32, 64)
_SHAPES = 128
_PLACES = 8
_UNITS = 192
_SIDE = 8


class Small(JudgeNetwork):
    """Halves the picture until 8 pixels are left; of 128 shape detectors over them only the strongest answer counts.

    A shape is thus learnt once for all places, which takes several times fewer examples than a head over the whole
    map; eight channels keep their places, for attributes such as a location. About 4 MFLOP per 32x32 image.
    """

    def __init__(self, image_shape: tuple[int, int, int], sizes: tuple[int, ...]) -> None:
        super().__init__(image_shape, sizes)
        channels, height, width = image_shape
        stem: list[nn.Module] = []
        while max(height, width) > _SIDE:
            following = _STEM[min(len(stem) // 3, len(_STEM) - 1)]
            first = not stem
            stem += [
                nn.Conv2d(channels, following, 4 if first else 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(following),
                nn.ReLU(inplace=True),
            ]
            # A 4x4 convolution with padding 1 halves rounding down, a 3x3 one rounding up.
            height, width = ((side + (not first)) // 2 for side in (height, width))
            channels = following
        self.stem = nn.Sequential(*stem)
        self.shapes = nn.Sequential(nn.Conv2d(channels, _SHAPES, 3, padding=1, bias=False), nn.BatchNorm2d(_SHAPES))
        self.places = nn.Conv2d(channels, _PLACES, 1)
        self.hidden = nn.Linear(_SHAPES + _PLACES * height * width, _UNITS)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(_UNITS, sum(sizes))

    def forward(self, images: Tensor) -> list[Tensor]:
        features = self.stem(images)
        strongest = F.relu(self.shapes(features).amax((2, 3)))
        places = F.relu(self.places(features)).flatten(1)
        logits = self.head(self.dropout(F.relu(self.hidden(torch.cat([strongest, places], 1)))))
        return list(logits.split(self.sizes, dim=1))
