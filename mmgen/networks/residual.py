"""A decoder that draws on a coarse grid of cells, each unfolded into pixels, and an encoder to match: sharp on CPUs.

References:
    Spatial Broadcast Decoder (Watters, Matthey, Burgess, Lerchner, 2019), arXiv:1901.07017: z beside coordinates
    Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel CNN (Shi et al., 2016),
    arXiv:1609.05158: pixels unfolded from channels
"""

from itertools import pairwise
from typing import Annotated, ClassVar

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.networks._base import Conv2d, ImageNetwork, Reshape, Sizes, cell_coordinates, dense_layers, divide_sides

__all__ = ["Residual"]

Size = Annotated[int, Field(ge=1)]

_COARSE = (32, 4)
"""Feature maps and side of the coarse map, which is stretched over all cells."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class Residual(ImageNetwork):
    """Convolutions with residual connections; images are divided into cells of ``cell`` x ``cell`` pixels.

    Every cell knows where it lies and all of z, so an object can be drawn anywhere by the same weights; a coarse map
    made of z says roughly what lies where. Nothing is computed at full resolution: the last layer gives each cell's
    pixels as channels.
    """

    patch: Size = 2
    """Side of the patches that the encoder folds into channels."""
    channels: Sizes = (32, 64, 96, 128)
    """Feature maps of the encoder: the first layer at the resolution of patches, each further one at half the side."""
    fully_connected: Size = 256
    """Width of the fully connected layers next to z."""
    cell: Size = 4
    """Side of the cells that the decoder draws, in pixels."""
    width: Size = 64
    """Feature maps of the decoder."""
    blocks: Size = 4
    """Residual convolutions of the decoder."""

    finer: ClassVar = ({}, {"channels": [32, 64, 96]}, {"patch": 1, "channels": [32, 64, 96]})
    """Settings in place of the defaults, by falling step: for sides divisible by 16, by 8 (24, 40) and by 4 (28)."""

    @property
    def step(self) -> int:
        return int(self.patch * 2 ** (len(self.channels) - 1))

    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        height, width = divide_sides("residual", shape, self.step, "patch or channels")
        patches = shape[0] * self.patch**2
        layers: list[nn.Module] = [
            nn.PixelUnshuffle(self.patch),
            nn.BatchNorm2d(patches, affine=False),  # a bright, even ground would drown what differs
        ]
        for number, (before, after) in enumerate(pairwise([patches, *self.channels])):
            stride = 1 if number == 0 else 2
            layers += [Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [
            nn.Flatten(),
            dense_layers([self.channels[-1] * height * width, self.fully_connected], nn.ReLU, activate_last=True),
        ]
        return nn.Sequential(*layers), self.fully_connected

    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        return _Cells(self, inputs, shape, divide_sides("residual", shape, self.cell, "cell"))


class _Cells(nn.Module):
    """Decoder from z [B, inputs] to pixels [B, C, H, W] that first computes a map of ``sides`` cells."""

    coordinates: Tensor

    def __init__(self, settings: Residual, inputs: int, shape: tuple[int, int, int], sides: tuple[int, int]) -> None:
        super().__init__()
        (channels, coarse), width = _COARSE, settings.width
        self.hidden = dense_layers([inputs, settings.fully_connected], nn.ReLU, activate_last=True)
        self.coarse = nn.Sequential(
            nn.Linear(settings.fully_connected, channels * coarse**2),
            Reshape((channels, coarse, coarse)),
            nn.Upsample(size=sides, mode="bilinear"),
        )
        self.everywhere = nn.Linear(settings.fully_connected, width)
        self.register_buffer("coordinates", cell_coordinates(sides), persistent=False)
        self.first = Conv2d(channels + 2, width, 3, 1, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), Conv2d(width, width, 3, 1, 1, bias=False))
            for _ in range(settings.blocks)
        )
        self.last = nn.Sequential(
            nn.BatchNorm2d(width),
            nn.ReLU(),
            Conv2d(width, shape[0] * settings.cell**2, 3, 1, 1),
            nn.PixelShuffle(settings.cell),
        )

    def forward(self, z: Tensor) -> Tensor:
        hidden = self.hidden(z)
        where = self.coordinates.to(hidden.dtype).expand(len(z), -1, -1, -1)
        x = self.first(torch.cat([self.coarse(hidden), where], 1)) + self.everywhere(hidden)[:, :, None, None]
        for block in self.blocks:
            x = x + block(x)
        pixels: Tensor = self.last(x)
        return pixels
