"""A decoder that draws one object on a small sheet and then scales, turns and places the sheet on the canvas.

References:
    Spatial Transformer Networks (Jaderberg, Simonyan, Zisserman, Kavukcuoglu, 2015), arXiv:1506.02025
"""

from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.likelihoods import full_precision
from mmgen.networks._base import ACTIVATIONS, ImageNetwork, Sizes, dense_layers
from mmgen.networks.strided import Strided

__all__ = ["SpatialTransformer"]

Size = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class SpatialTransformer(ImageNetwork):
    """Decoder for pictures of one object on an empty canvas, such as MNIST-A: it draws the object and places it.

    Size, turn and place are linear maps of coordinates here, which convolutions must learn for every position anew. It
    learns from several times fewer examples, and each costs less: the full canvas is touched once.
    The encoder is that of :class:`~mmgen.networks.strided.Strided`.
    """

    sheet: Size = 28
    """Side of the sheet that the object is drawn on."""
    fully_connected: Sizes = (256, 512)
    """Hidden widths of the networks that draw and that place."""
    background: float = -6.0
    """Decoder output where nothing is drawn, at first: a logit, so the probability of ink is 0.2 %."""
    grounds: bool = False
    """Whether z decides the colour of the canvas too, which a mask on the sheet covers: for one object on an even
    ground of several colours."""
    patch: Size = 4
    """Side of the patches that the encoder folds into channels."""
    channels: Sizes = (32, 64, 128)
    """Feature maps of the encoder's layers."""
    features: Sizes = (256,)
    """Widths of the encoder's fully connected layers."""
    activation: Literal["elu", "relu", "silu"] = "relu"
    """Non-linearity."""

    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        strided = Strided(
            patch=self.patch, channels=self.channels, fully_connected=self.features, activation=self.activation
        )
        return strided.encoder(shape)

    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        return _DrawAndPlace(
            inputs, shape, self.sheet, self.fully_connected, self.background, self.activation, self.grounds
        )


class _DrawAndPlace(nn.Module):
    """Decoder from z [B, inputs] to pixels [B, C, H, W]: draws a small picture and places it on the canvas."""

    def __init__(
        self,
        inputs: int,
        shape: tuple[int, int, int],
        sheet: int,
        hidden: tuple[int, ...],
        background: float,
        activation: str,
        grounds: bool = False,
    ) -> None:
        super().__init__()
        self.shape, self.sheet = shape, sheet
        act = ACTIVATIONS[activation]
        self.draw = dense_layers([inputs, *hidden, (shape[0] + grounds) * sheet * sheet], act)
        self.place = dense_layers([inputs, hidden[0], hidden[0], 6], act)
        self.background = nn.Parameter(torch.full((shape[0], 1, 1), background))
        self.ground = dense_layers([inputs, hidden[0] // 2, shape[0]], act) if grounds else None
        last = self.place[-1]
        assert isinstance(last, nn.Linear)
        # At first the sheet lies upright on the middle two thirds of the canvas, wherever z is.
        with torch.no_grad():
            last.weight.mul_(0.1)
            last.bias.copy_(torch.tensor([1.5, 0.0, 0.0, 0.0, 1.5, 0.0]))

    def forward(self, z: Tensor) -> Tensor:
        ink = full_precision(self.draw(z)).reshape(len(z), -1, self.sheet, self.sheet)
        if self.ground is not None:
            # Added to the ground, ink would be a product of shape and contrast, with another sign on dark grounds.
            mask = ink[:, -1:].sigmoid()
            ink = torch.cat([mask * ink[:, :-1], mask], 1)
        # Coordinates in bf16 would be off by whole pixels.
        affine = full_precision(self.place(z)).reshape(-1, 2, 3)
        with torch.autocast(z.device.type, enabled=False):
            placed = F.grid_sample(ink, self._sampling_grid(affine), "bilinear", "zeros", align_corners=False)
        if self.ground is None:
            return self.background + placed
        ground = self.background + full_precision(self.ground(z))[:, :, None, None]
        return (1 - placed[:, -1:]) * ground + placed[:, :-1]

    def _sampling_grid(self, affine: Tensor) -> Tensor:
        """Return each canvas pixel's place on the small picture [B, H, W, 2]; as F.affine_grid, but fast on CPUs."""
        _, height, width = self.shape
        y = ((2 * torch.arange(height, device=affine.device, dtype=affine.dtype) + 1) / height - 1).reshape(1, -1, 1, 1)
        x = ((2 * torch.arange(width, device=affine.device, dtype=affine.dtype) + 1) / width - 1).reshape(1, 1, -1, 1)
        to_x, to_y, shift = (affine[:, None, None, :, i] for i in range(3))
        return (y * to_y + shift) + x * to_x
