"""The layers that z consists of: one for most models, several for a ladder."""

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["LatentSpace"]


@dataclass(frozen=True)
class LatentSpace:
    """Layers of z, side by side on its last axis, so that whoever needs no layers sees a flat z.

    Attributes:
        layers: Size of each layer by name, the one next to the data first.

    Example:
        >>> space = LatentSpace({"z1": 2, "z2": 1})
        >>> space.size, space.split(torch.tensor([1.0, 2.0, 3.0]))["z2"]
        (3, tensor([3.]))
    """

    layers: dict[str, int]

    @classmethod
    def flat(cls, size: int) -> "LatentSpace":
        """One layer, called z."""
        return cls({"z": size})

    @property
    def size(self) -> int:
        """D, dimensions of all layers together."""
        return sum(self.layers.values())

    @property
    def top(self) -> str:
        """Name of the layer farthest from the data."""
        return list(self.layers)[-1]

    def split(self, z: Tensor) -> dict[str, Tensor]:
        """z [..., D] -> layers [..., D_l] by name; views, no copies."""
        return dict(zip(self.layers, z.split(list(self.layers.values()), -1), strict=True))

    def join(self, layers: dict[str, Tensor]) -> Tensor:
        """Layers [..., D_l] by name -> z [..., D]."""
        return torch.cat([layers[name] for name in self.layers], -1)
