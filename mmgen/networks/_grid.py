"""Networks next to a grid of latents: the head of an encoder, and a reader of the grid as one vector of features."""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.networks._base import Grid, Reshape
from mmgen.networks._convolutions import Conv2d

__all__ = ["GridHead", "GridReader"]


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
