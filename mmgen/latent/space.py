"""Layers of z and their shapes: one flat layer for most models, a grid for spatial ones, several for ladders."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

Axis = int | tuple[int, ...]
"""Positions in z that belong together: one position of a flat layer, or all positions of a channel of a grid."""


@dataclass(frozen=True)
class LatentSpace:
    """Names and shapes of the layers of z; a z [..., D] holds all layers flattened, one after another.

    Attributes:
        shapes: Shape of each layer by name, from the data to the top: (D_l,) for a flat layer, (C, h, w) for a grid. A
            number means a flat layer of that size.
        owners: The modality that a layer belongs to, by layer; layers that modalities share are not in it.

    Example:
        >>> space = LatentSpace({"z1": 2, "z2": (2, 4, 4)})
        >>> space.size, space.grids(torch.zeros(5, 34))["z2"].shape
        (34, torch.Size([5, 2, 4, 4]))
    """

    shapes: Mapping[str, tuple[int, ...]]
    owners: Mapping[str, str]

    def __init__(self, shapes: Mapping[str, int | tuple[int, ...]], owners: Mapping[str, str] | None = None) -> None:
        whole = {name: (shape,) if isinstance(shape, int) else tuple(shape) for name, shape in shapes.items()}
        object.__setattr__(self, "shapes", whole)
        object.__setattr__(self, "owners", dict(owners or {}))

    @classmethod
    def flat(cls, size: int) -> "LatentSpace":
        """Make the space of a z with a single flat layer of ``size`` dimensions."""
        return cls({"z": size})

    @classmethod
    def grid(cls, channels: int, *sides: int) -> "LatentSpace":
        """Make the space of a z that is a single grid [C, h, w]: ``channels`` is C, ``sides`` are h and w."""
        return cls({"z": (channels, *sides)})

    def with_private(self, sizes: Mapping[str, int]) -> "LatentSpace":
        """Return the space of these layers and a flat one for each modality in ``sizes``, which belongs to it.

        Example:
            >>> LatentSpace.flat(3).with_private({"image": 2}).layers
            {'z': 3, 'z of image': 2}
        """
        own = {f"z of {name}": name for name in sorted(sizes)}  # files sort keys too
        return LatentSpace({**self.shapes, **{layer: sizes[name] for layer, name in own.items()}}, own)

    def seen_by(self, name: str, z: Tensor) -> Tensor:
        """Return the part [..., F] of z [..., D] that the decoder of a modality sees: shared layers and its own."""
        if not self.owners:
            return z
        return torch.cat([each for layer, each in self.split(z).items() if self.owners.get(layer, name) == name], -1)

    def size_seen_by(self, name: str) -> int:
        """Return the number of dimensions that :meth:`seen_by` returns."""
        return sum(size for layer, size in self.layers.items() if self.owners.get(layer, name) == name)

    @property
    def shares_nothing(self) -> bool:
        """Whether every layer belongs to a modality, so that modalities say nothing of each other."""
        return len(self.owners) == len(self.shapes)

    def of_layer(self, name: str) -> "LatentSpace":
        """Return the space of a single layer."""
        return LatentSpace({name: self.shapes[name]})

    @property
    def layers(self) -> dict[str, int]:
        """Number of dimensions D_l of each layer, by name."""
        return {name: math.prod(shape) for name, shape in self.shapes.items()}

    @property
    def size(self) -> int:
        """Total number of dimensions D of all layers."""
        return sum(self.layers.values())

    @property
    def single_grid(self) -> tuple[int, int, int] | None:
        """Shape (C, h, w) of a z that is one grid; None for any other z."""
        shapes = list(self.shapes.values())
        if len(shapes) != 1 or len(shapes[0]) != 3:
            return None
        channels, height, width = shapes[0]
        return channels, height, width

    @property
    def top(self) -> str:
        """Name of the layer farthest from the data."""
        return list(self.shapes)[-1]

    def split(self, z: Tensor) -> dict[str, Tensor]:
        """Split z [..., D] into flat layers [..., D_l] by name; views, no copies."""
        return dict(zip(self.shapes, z.split(list(self.layers.values()), -1), strict=True))

    def join(self, layers: Mapping[str, Tensor]) -> Tensor:
        """Join flat layers [..., D_l] to z [..., D]."""
        return torch.cat([layers[name] for name in self.shapes], -1)

    def grids(self, z: Tensor) -> dict[str, Tensor]:
        """Split z [..., D] into layers of their own shapes [..., *shape] by name."""
        return {name: layer.unflatten(-1, self.shapes[name]) for name, layer in self.split(z).items()}

    def average_places(self, z: Tensor) -> Tensor:
        """Return z [..., D] with the places of each channel of a grid replaced by their mean; flat layers stay."""
        channels = {name: layer.unflatten(-1, (self.shapes[name][0], -1)) for name, layer in self.split(z).items()}
        means = {name: each.mean(-1, keepdim=True).expand_as(each).flatten(-2) for name, each in channels.items()}
        return self.join(means)

    def axes(self, layer: str) -> list[Axis]:
        """Return the axes of a layer: for each, its position in z, or for a channel of a grid its positions.

        An axis of a flat layer is one position; an axis of a grid is a channel with all its places.

        Example:
            >>> LatentSpace({"z1": 2, "z2": (2, 1, 2)}).axes("z2")
            [(2, 3), (4, 5)]
        """
        sizes = self.layers
        first = sum(sizes[name] for name in list(sizes)[: list(sizes).index(layer)])
        channels = self.shapes[layer][0]
        each = sizes[layer] // channels
        if len(self.shapes[layer]) == 1:
            return list(range(first, first + channels))
        return [tuple(range(first + each * axis, first + each * (axis + 1))) for axis in range(channels)]
