"""Networks that see an image as patches of four by four pixels, each read and drawn by the same linear layer."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import nn

from mmgen.networks import ImageNetwork, Reshape
from mmgen.objectives import CONFIG

__all__ = ["Patches"]

_SIDE = 4


@dataclass(frozen=True, config=CONFIG)
class Patches(ImageNetwork):
    """Images whose sides are multiples of four."""

    channels: Annotated[int, Field(ge=1)] = 8
    """Features of a patch."""

    hidden: Annotated[int, Field(ge=1)] = 32
    """Width of the layer that sees all patches."""

    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        """Patches to features, all features to ``hidden``."""
        features = self.channels * (shape[1] // _SIDE) * (shape[2] // _SIDE)
        read = nn.Conv2d(shape[0], self.channels, _SIDE, _SIDE)
        return nn.Sequential(read, nn.Flatten(), nn.ELU(), nn.Linear(features, self.hidden), nn.ELU()), self.hidden

    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        """The way back."""
        small = (self.channels, shape[1] // _SIDE, shape[2] // _SIDE)
        draw = nn.ConvTranspose2d(self.channels, shape[0], _SIDE, _SIDE)
        return nn.Sequential(nn.Linear(inputs, small[0] * small[1] * small[2]), nn.ELU(), Reshape(small), draw)
