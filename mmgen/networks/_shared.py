"""Networks that modalities share: next to z, on both sides (CK Section 5.1)."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.core.errors import SettingsError
from mmgen.networks._base import ACTIVATIONS

__all__ = ["SharedDecoder", "SharedEncoder", "SharedNetwork"]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class SharedNetwork:
    """Settings of layers that all modalities share, between features and z, and between z and the decoders."""

    hidden: Annotated[int, Field(ge=1)] = 200
    """Width of their layers, and of the decoders' input (CK: 200)."""
    outputs: Annotated[int, Field(ge=1)] | None = None
    """Width of the decoders' input, if it differs. The shared decoder is then that of CK's published code (500 wide,
    200 out), which passes z on beside its layers: ``hidden`` is at least the size of z."""
    activation: Literal["elu", "relu", "silu"] = "relu"
    """Non-linearity."""


class _Layer(nn.Sequential):
    """Linear layer with batch norm and an activation."""

    def __init__(self, inputs: int, outputs: int, activation: str) -> None:
        super().__init__(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), ACTIVATIONS[activation]())


class SharedEncoder(nn.Module):
    """Layers from the features of all modalities [B, F] to [B, outputs]: three, with a residual connection."""

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
    """Layers from z [B, D] to the common input of all decoders [B, outputs]: five, with two residual connections.

    Raises:
        SettingsError: z is passed on beside layers that are narrower.
    """

    def __init__(self, latent_size: int, settings: SharedNetwork) -> None:
        super().__init__()
        hidden = settings.hidden
        self.outputs = settings.outputs or hidden
        self.beside = None if settings.outputs is None else hidden - latent_size
        if self.beside is None:
            sizes = [latent_size, *[hidden] * 4]
            layers: list[nn.Module] = [_Layer(size, hidden, settings.activation) for size in sizes]
        else:
            if self.beside < 0:
                raise SettingsError(
                    f"model.shared.hidden got {hidden}, expected at least the latent size {latent_size} where "
                    "model.shared.outputs is given; use wider layers"
                )
            layers = []
            for size in (latent_size, hidden):
                layers += [_Layer(size, hidden, settings.activation), nn.Linear(hidden, hidden)]
            layers.append(nn.Linear(hidden, self.outputs))
        self.layers = nn.ModuleList(layers)

    def forward(self, z: Tensor) -> Tensor:
        if self.beside is None:
            one = self.layers[0](z)
            three = one + self.layers[2](self.layers[1](one))
            result: Tensor = three + self.layers[4](self.layers[3](three))
            return result
        two = self.layers[1](self.layers[0](z)) + nn.functional.pad(z, (0, self.beside))
        four = self.layers[3](self.layers[2](two)) + two
        given: Tensor = self.layers[4](four)
        return given
