"""Spatial broadcast decoder: every cell receives z and its coordinates, so that positions are easy to encode.

References:
    Spatial Broadcast Decoder: A Simple Architecture for Learning Disentangled Representations in VAEs (Watters,
    Matthey, Burgess, Lerchner, 2019), arXiv:1901.07017
"""

from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.networks._base import ACTIVATIONS, Conv2d, ImageNetwork, Sizes, cell_coordinates, dense_layers, divide_sides

__all__ = ["SpatialBroadcast"]

Size = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class SpatialBroadcast(ImageNetwork):
    """Decoder that draws each cell of ``cell`` x ``cell`` pixels from z and the cell's coordinates.

    An object is moved by adding to two coordinates, where networks that make a picture from one vector learn each place
    anew. The published decoder has cells of one pixel and convolutions of 3 x 3 (``cell = 1, kernel = 3``, from
    memory); a hidden layer over cells of 4 x 4 pixels that do not look at their neighbours has a 144th of its
    multiplications.
    """

    patch: Size = 8
    """Side of the patches that the encoder folds into channels."""
    channels: Sizes = (32,)
    """Feature maps of the encoder: a linear map of each patch, then convolutions of 3 x 3 which halve the side."""
    fully_connected: tuple[Size, ...] = (256, 256)
    """Widths of the encoder's fully connected layers."""
    cell: Size = 4
    """Side of the cells that the decoder draws, in pixels."""
    kernel: Literal[1, 3, 5] = 1
    """Side of the decoder's convolutions; 1: cells do not look at their neighbours."""
    width: Size = 64
    """Feature maps of the decoder."""
    layers: Size = 3
    """Convolutions of the decoder before the last one, the one of coordinates included."""
    hidden: tuple[Size, ...] = (128, 128)
    """Widths of the fully connected layers between z and the cells; none: z itself is broadcast, as published."""
    activation: Literal["elu", "relu", "silu", "tanh"] = "relu"
    """Non-linearity."""

    finer: ClassVar = ({}, {"patch": 4}, {"patch": 2, "cell": 2}, {"patch": 1, "cell": 1})
    """Settings in place of the defaults, by falling step: for sides divisible by 8, 4 (28) and 2, and for others."""

    @property
    def step(self) -> int:
        return max(int(self.patch * 2 ** (len(self.channels) - 1)), self.cell)

    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        height, width = divide_sides(
            "spatial-broadcast", shape, self.patch * 2 ** (len(self.channels) - 1), "patch or channels"
        )
        activation = ACTIVATIONS[self.activation]
        layers: list[nn.Module] = [Conv2d(shape[0], self.channels[0], self.patch, self.patch), activation()]
        for before, after in pairwise(self.channels):
            layers += [Conv2d(before, after, 3, 2, 1), activation()]
        sizes = [self.channels[-1] * height * width, *self.fully_connected]
        return nn.Sequential(*layers, nn.Flatten(), dense_layers(sizes, activation, activate_last=True)), sizes[-1]

    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        return _Broadcast(self, inputs, shape, divide_sides("spatial-broadcast", shape, self.cell, "cell"))


class _Broadcast(nn.Module):
    """Decoder from z [B, inputs] to pixels [B, C, H, W] that copies z to every one of ``sides`` cells."""

    coordinates: Tensor

    def __init__(
        self, settings: SpatialBroadcast, inputs: int, shape: tuple[int, int, int], sides: tuple[int, int]
    ) -> None:
        super().__init__()
        kernel, width = settings.kernel, settings.width
        activation = ACTIVATIONS[settings.activation]
        sizes = [inputs, *settings.hidden]
        self.hidden = dense_layers(sizes, activation, activate_last=True)
        self.register_buffer("coordinates", cell_coordinates(sides)[None], persistent=False)
        # One layer of both, apart: what coordinates add is the same for all z, and what z adds for all cells.
        self.where = Conv2d(2, width, kernel, 1, kernel // 2)
        self.what = nn.Linear(sizes[-1], width, bias=False)
        layers: list[nn.Module] = [activation()]
        for _ in range(settings.layers - 1):
            layers += [Conv2d(width, width, kernel, 1, kernel // 2), activation()]
        layers += [Conv2d(width, shape[0] * settings.cell**2, kernel, 1, kernel // 2), nn.PixelShuffle(settings.cell)]
        self.draw = nn.Sequential(*layers)

    def forward(self, z: Tensor) -> Tensor:
        what = self.what(self.hidden(z))[:, :, None, None]
        pixels: Tensor = self.draw(self.where(self.coordinates.to(what.dtype)) + what)
        return pixels
