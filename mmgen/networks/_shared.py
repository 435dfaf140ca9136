"""Networks next to z, which kinds of data share: fully connected layers, and heads of a grid of latents."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.core.errors import SettingsError
from mmgen.networks._base import ACTIVATIONS, Conv2d, Grid, Reshape, dense_layers


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


class GridHead(nn.Module):
    """Layers from features [B, F] to mean and log sd of a grid [B, 2 C h w], the same at each place.

    Args:
        grid: Shape (C, h, w) of z.
        features: F: feature maps [M, h, w], flattened, and then what is said of all places.
        maps: M h w, the part of F that has places.
        hidden: Width of the layer that joins both; unused where all features have places.
        activation: Non-linearity of that layer.
    """

    def __init__(self, grid: Grid, features: int, maps: int, hidden: int, activation: nn.Module) -> None:
        super().__init__()
        self.sides, self.maps, self.activation = grid[1:], maps, activation
        channels = maps // (grid[1] * grid[2])
        self.everywhere = nn.Linear(features - maps, hidden) if features > maps else None
        self.places = nn.Identity() if self.everywhere is None else Conv2d(channels, hidden, 1)
        self.last = Conv2d(channels if self.everywhere is None else hidden, 2 * grid[0], 1)

    def forward(self, features: Tensor) -> Tensor:
        hidden = self.places(features[:, : self.maps].unflatten(1, (-1, *self.sides)))
        if self.everywhere is not None:
            hidden = self.activation(hidden + self.everywhere(features[:, self.maps :])[:, :, None, None])
        output: Tensor = self.last(hidden)
        return output.flatten(1)


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class GridReader:
    """Settings of the networks from a grid to features: two convolutions, then averages over cells."""

    channels: Annotated[int, Field(ge=1)] = 64
    """Feature maps of the convolutions."""
    cells: Annotated[int, Field(ge=1)] = 4
    """Cells along a side, over each of which features are averaged; a grid of fewer places keeps its places."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Share of the features that are dropped in training."""

    def build(self, grid: Grid) -> tuple[nn.Module, int]:
        """Return a network from flat grids [B, c h w] of the shape ``grid`` to features [B, F], and F."""
        cells = [min(self.cells, side) for side in grid[1:]]
        layers = nn.Sequential(
            Reshape(grid),
            Conv2d(grid[0], self.channels, 3, padding=1), nn.SiLU(),
            Conv2d(self.channels, self.channels, 3, padding=1), nn.SiLU(),
            nn.AdaptiveAvgPool2d((cells[0], cells[1])), nn.Flatten(), nn.Dropout(self.dropout),
        )  # fmt: skip
        return layers, self.channels * cells[0] * cells[1]
