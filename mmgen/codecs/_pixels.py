"""Pixels as latents: each patch of a picture becomes one place of a grid."""

from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from mmgen.codecs._base import Affine, Codec


class Pixels(Codec):
    """Codec without weights: pixels from -1 to 1, the pixels of a patch as channels of one place.

    A flow over such latents is a flow over pixels. The transform only reorders numbers, so distances are kept.
    """

    name: Literal["pixels"] = "pixels"
    patch: Annotated[int, Field(ge=1, le=64)] = 8
    """Pixels along a side of a patch."""

    @property
    def step(self) -> int:
        return self.patch

    def latent_channels_of(self, channels: int) -> int:
        return channels * self.patch**2

    def build(self, channels: int) -> tuple[nn.Module, nn.Module]:
        return (
            nn.Sequential(Affine(2, -1), nn.PixelUnshuffle(self.patch)),
            nn.Sequential(nn.PixelShuffle(self.patch), Affine(0.5, 0.5)),
        )
