"""Networks that read a grid of latents as one vector of features."""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import nn

from mmgen.networks._base import Reshape

__all__ = ["GridReader"]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class GridReader:
    """Settings of the networks from a grid to features: two convolutions, then averages over cells."""

    channels: Annotated[int, Field(ge=1)] = 64
    """Feature maps of the convolutions."""
    cells: Annotated[int, Field(ge=1)] = 4
    """Cells along a side, over each of which features are averaged; a grid of fewer places keeps its places."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Share of the features that are dropped in training."""

    def build(self, grid: tuple[int, int, int]) -> tuple[nn.Module, int]:
        """Return a network from flat grids [B, c h w] of the shape ``grid`` to features [B, F], and F."""
        cells = [min(self.cells, side) for side in grid[1:]]
        layers = nn.Sequential(
            Reshape(grid),
            nn.Conv2d(grid[0], self.channels, 3, padding=1), nn.SiLU(),
            nn.Conv2d(self.channels, self.channels, 3, padding=1), nn.SiLU(),
            nn.AdaptiveAvgPool2d((cells[0], cells[1])), nn.Flatten(), nn.Dropout(self.dropout),
        )  # fmt: skip
        return layers, self.channels * cells[0] * cells[1]
