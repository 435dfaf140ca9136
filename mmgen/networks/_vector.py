"""Networks over vectors of real numbers: fully connected layers."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import nn

from mmgen.networks._base import ACTIVATIONS, dense_layers

__all__ = ["VectorNetwork"]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class VectorNetwork:
    """Settings of the networks that encode and decode vectors of real numbers."""

    hidden: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (128, 128)
    """Sizes of the hidden layers of the encoder; the decoder has them in reverse."""
    activation: Literal["elu", "relu", "silu", "tanh"] = "silu"
    """Non-linearity."""

    def encoder(self, size: int) -> tuple[nn.Module, int]:
        """Return a network from vectors [B, size] to features [B, F], and F."""
        return dense_layers([size, *self.hidden], ACTIVATIONS[self.activation], activate_last=True), self.hidden[-1]

    def decoder(self, inputs: int, outputs: int) -> nn.Module:
        """Return a network from decoder inputs [B, inputs] to parameters [B, outputs]."""
        return dense_layers([inputs, *self.hidden[::-1], outputs], ACTIVATIONS[self.activation])
