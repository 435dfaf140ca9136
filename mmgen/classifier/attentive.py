"""A classifier for scenes of small objects on CPUs: convolutions, then attention that known attributes steer."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.classifier._classifier import ClassifierNetwork
from mmgen.networks import Conv2d

__all__ = ["Attentive"]

_CHANNELS = (48, 64, 96, 128)
_STRIDES = (1, 1, 2, 1)
_LOOKS = 2
_UNITS = 256
_MOMENTUM = 0.5
"""Momentum of running statistics. Nearly all of a scene is floor, so they hardly differ between batches; but a small
change of weights moves them by many standard deviations, and slow averages lag behind: validation was nats worse than
training.
"""


class Attentive(ClassifierNetwork):
    """Classifier network with attention over positions, which recognises an object wherever it stands.

    2x2 patches become channels, then four convolutions 3x3 with batch norm. At each place of the last map, what is
    seen, where it is and the known attributes give a score; a softmax over places makes a look of it, the mean of what
    is seen there. Looks are read by a shared layer and a head per attribute.

    Where the attributes are one list twice (size, colour, ... of the first object, then of the second), each half has
    its own looks and both share all other layers: colours are learnt from both objects.
    """

    def __init__(self, image_shape: tuple[int, int, int], sizes: tuple[int, ...], hint_size: int = 0) -> None:
        super().__init__(image_shape, sizes, hint_size)
        half = len(sizes) // 2
        self.objects = 2 if len(sizes) % 2 == 0 and sizes[:half] == sizes[half:] and hint_size else 1
        channels, height, width = image_shape
        self.padding = (0, -width % 4, 0, -height % 4)
        layers: list[nn.Module] = [nn.PixelUnshuffle(2)]
        before = 4 * channels
        for after, stride in zip(_CHANNELS, _STRIDES, strict=True):
            layers += [
                Conv2d(before, after, 3, stride, 1, bias=False),
                nn.BatchNorm2d(after, momentum=_MOMENTUM),
                nn.ReLU(inplace=True),
            ]
            before = after
        self.convolutions = nn.Sequential(*layers)
        self.score = nn.Sequential(
            nn.Linear(before + 2 + hint_size, 128), nn.ReLU(inplace=True), nn.Linear(128, _LOOKS * self.objects)
        )
        self.hidden = nn.Linear(_LOOKS * (before + 2), _UNITS)
        self.norm = nn.BatchNorm1d(_UNITS, momentum=_MOMENTUM)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(_UNITS, sum(sizes) // self.objects)

    def features(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        seen = self.convolutions(F.pad(images, self.padding))  # [B, F, H', W']
        batch, _, height, width = seen.shape
        down = torch.linspace(-1, 1, height, device=seen.device, dtype=seen.dtype)
        right = torch.linspace(-1, 1, width, device=seen.device, dtype=seen.dtype)
        places = torch.stack(torch.meshgrid(down, right, indexing="ij"), -1).flatten(0, 1).expand(batch, -1, -1)
        features = torch.cat([seen.flatten(2).transpose(1, 2), places], 2)  # [B, H'W', F + 2]
        asked = features
        if hints is not None and self.hint_size:
            spread = hints.to(features.dtype)[:, None].expand(-1, features.shape[1], -1)
            asked = torch.cat([features, spread], 2)
        weights = self.score(asked).softmax(1)  # [B, H'W', looks]
        looks = (weights.transpose(1, 2) @ features).reshape(batch * self.objects, -1)
        return F.relu(self.norm(self.hidden(looks))).reshape(batch, -1)

    def logits(self, features: Tensor) -> list[Tensor]:
        objects = self.dropout(features).reshape(-1, _UNITS)
        return list(self.head(objects).reshape(len(features), -1).split(self.sizes, dim=1))
