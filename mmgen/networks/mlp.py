"""Fully connected image networks (WG use 512-512 on MNIST, Burda et al. 200-200 with tanh)."""

import math
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import nn

from mmgen.networks._base import ACTIVATIONS, ImageNetwork, Reshape, dense_layers

__all__ = ["Mlp"]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class Mlp(ImageNetwork):
    """Fully connected layers on flattened pixels."""

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (512, 512)
    """Sizes of the hidden layers of the encoder; none: its features are the pixels."""
    decoder_hidden: tuple[Annotated[int, Field(ge=1)], ...] | None = None
    """Sizes of those of the decoder; left out, the encoder's in reverse (WG's published code on MNIST: 512-512-512)."""
    activation: Literal["elu", "relu", "silu", "softplus", "tanh"] = "silu"
    """Non-linearity."""
    decoder_activation: Literal["elu", "relu", "silu", "tanh"] | None = None
    """That of the decoder; left out, the encoder's (Higgins et al., 2017, on dSprites: tanh after relu)."""

    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        sizes = [math.prod(shape), *self.hidden]
        return nn.Sequential(
            nn.Flatten(), dense_layers(sizes, ACTIVATIONS[self.activation], activate_last=True)
        ), sizes[-1]

    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        hidden = self.hidden[::-1] if self.decoder_hidden is None else self.decoder_hidden
        activation = ACTIVATIONS[self.decoder_activation or self.activation]
        layers = dense_layers([inputs, *hidden, math.prod(shape)], activation)
        return nn.Sequential(layers, Reshape(shape))
