"""The base class of codecs, and layers that several of them share."""

from abc import ABC, abstractmethod
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from mmgen.core.errors import SettingsError
from mmgen.settings.config import Settings

Channels = Annotated[int, Field(ge=1, le=4096)]
"""Number of feature maps; the limit is far above that of any published autoencoder."""
Count = Annotated[int, Field(ge=1, le=16)]
"""Number of blocks or layers."""


class Codec(Settings, ABC):
    """Base of the settings of codecs: networks from pictures in [0, 1] to grids of latents, and back."""

    name: str

    @property
    @abstractmethod
    def step(self) -> int:
        """Number of pixels along a side of one place of the grid."""

    @abstractmethod
    def latent_channels_of(self, channels: int) -> int:
        """Return the number of channels of the grid for pictures of so many channels."""

    @abstractmethod
    def build(self, channels: int) -> tuple[nn.Module, nn.Module]:
        """Build the networks for pictures of so many channels.

        Returns:
            The encoder [B, C, H, W] -> [B, c, h, w] and the decoder back, with random weights.

        Raises:
            SettingsError: The codec is not for such pictures.
        """

    def grid(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return the shape (c, h, w) of the latents of pictures of ``shape`` (C, H, W).

        Raises:
            SettingsError: The sides of the pictures are no multiples of :attr:`step`.
        """
        channels, height, width = shape
        if height % self.step or width % self.step:
            sides = sorted({max(1, round(side / self.step)) * self.step for side in (height, width)})
            raise SettingsError(
                f"codec {self.name} got pictures of {height}x{width}, expected sides that are multiples of "
                f"{self.step}; make the data with --size {' or '.join(map(str, sides))}"
            )
        return self.latent_channels_of(channels), height // self.step, width // self.step


class RepeatGrey(nn.Module):
    """Layer that repeats the channel of grey pictures [B, 1, H, W] to three."""

    def forward(self, pictures: Tensor) -> Tensor:
        return pictures.expand(-1, 3, -1, -1)


class AverageChannels(nn.Module):
    """Layer that averages the channels of pictures [B, C, H, W] to grey ones [B, 1, H, W]."""

    def forward(self, pictures: Tensor) -> Tensor:
        return pictures.mean(1, keepdim=True)


class Affine(nn.Module):
    """Layer that computes factor * x + shift, with fixed numbers."""

    def __init__(self, factor: float, shift: float) -> None:
        super().__init__()
        self.factor, self.shift = factor, shift

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x + self.shift


class Squash(nn.Module):
    """Layer that computes 3 tanh(x / 3), which keeps latents within the range of tiny autoencoders."""

    def forward(self, x: Tensor) -> Tensor:
        return 3 * torch.tanh(x / 3)


def for_channels(name: str, channels: int, encoder: nn.Module, decoder: nn.Module) -> tuple[nn.Module, nn.Module]:
    """Return networks of colour pictures with layers around them for pictures of ``channels``."""
    if channels == 3:
        return nn.Sequential(nn.Identity(), encoder), nn.Sequential(decoder, nn.Identity())
    if channels == 1:
        return nn.Sequential(RepeatGrey(), encoder), nn.Sequential(decoder, AverageChannels())
    raise SettingsError(
        f"codec {name} got pictures of {channels} channels, expected 3 for colour or 1 for grey; make the data with "
        "one of these"
    )
