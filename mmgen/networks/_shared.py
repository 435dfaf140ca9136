"""Networks that modalities share: next to z, on both sides (CK Section 5.1)."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.networks._base import ACTIVATIONS

__all__ = ["SharedDecoder", "SharedEncoder", "SharedNetwork"]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class SharedNetwork:
    """Widths of the networks between features and z, and between z and the decoders."""

    hidden: Annotated[int, Field(ge=1)] = 200
    """Width of their layers, and of what the decoders are given (CK: 200)."""
    activation: Literal["elu", "relu", "silu"] = "relu"
    """Non-linearity."""


class _Layer(nn.Sequential):
    """Fully connected, batch norm, non-linearity."""

    def __init__(self, inputs: int, outputs: int, activation: str) -> None:
        super().__init__(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), ACTIVATIONS[activation]())


class SharedEncoder(nn.Module):
    """Features of all encoded modalities [B, F] -> [B, outputs]: three layers with a residual connection."""

    def __init__(self, features: int, outputs: int, settings: SharedNetwork) -> None:
        super().__init__()
        self.first = _Layer(features, settings.hidden, settings.activation)
        self.second = _Layer(settings.hidden, settings.hidden, settings.activation)
        self.last = nn.Linear(settings.hidden, outputs)

    def forward(self, features: Tensor) -> Tensor:
        one = self.first(features)
        result: Tensor = self.last(one + self.second(one))
        return result


class SharedDecoder(nn.Module):
    """z [B, D] -> what every decoder is given [B, hidden]: five layers with two residual connections."""

    def __init__(self, latent_size: int, settings: SharedNetwork) -> None:
        super().__init__()
        self.outputs = settings.hidden
        sizes = [latent_size, *[settings.hidden] * 4]
        self.layers = nn.ModuleList(_Layer(size, settings.hidden, settings.activation) for size in sizes)

    def forward(self, z: Tensor) -> Tensor:
        one = self.layers[0](z)
        three = one + self.layers[2](self.layers[1](one))
        result: Tensor = three + self.layers[4](self.layers[3](three))
        return result
