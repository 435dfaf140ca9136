"""The base of families of image networks, and small blocks that several rooms share."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from mmgen.core.errors import SettingsError

__all__ = ["ACTIVATIONS", "ImageNetwork", "cell_coordinates", "dense_layers", "sides_in_steps"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
}


class ImageNetwork(ABC):
    """Family of encoder and decoder of images; members are frozen dataclasses of their settings."""

    finer: ClassVar[tuple[dict[str, Any], ...]] = ()
    """Settings in place of the defaults by falling :attr:`step`, from which :meth:`for_sides` takes the first."""

    @property
    def step(self) -> int:
        """Number of pixels of which every side must be a multiple."""
        return 1

    @classmethod
    def for_sides(cls, sides: Collection[int]) -> dict[str, Any]:
        """Return the settings to change for images of these sides (pixels); {} if the defaults fit or none do."""
        return next((finer for finer in cls.finer if not any(side % cls(**finer).step for side in sides)), {})

    @abstractmethod
    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        """Return a network [B, C, H, W] -> [B, F] for images of ``shape``, and F."""

    @abstractmethod
    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        """Return a network [B, inputs] -> [B, C, H, W] for decoder outputs of ``shape``."""


def dense_layers(sizes: Sequence[int], activation: type[nn.Module] = nn.ELU, last: bool = False) -> nn.Sequential:
    """Return linear layers of the given sizes with an activation between them (and after the last one if ``last``)."""
    layers: list[nn.Module] = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if last or i < len(sizes) - 2:
            layers.append(activation())
    return nn.Sequential(*layers)


def sides_in_steps(network: str, shape: tuple[int, int, int], step: int, what: str) -> tuple[int, int]:
    """Return height and width of images of ``shape`` (C, H, W) in units of ``step`` pixels."""
    if shape[1] % step or shape[2] % step:
        raise SettingsError(
            f"image network {network} got images of {shape[1]}x{shape[2]}, expected sides divisible by {step}; "
            f"change its {what}"
        )
    return shape[1] // step, shape[2] // step


def cell_coordinates(sides: tuple[int, int]) -> Tensor:
    """Return row and column of every cell, each from -1 to 1: [2, *sides]."""
    rows, columns = (torch.linspace(-1, 1, side) for side in sides)
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))


class Reshape(nn.Module):
    """Module that reshapes [B, prod(shape)] to [B, *shape]."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], *self.shape)
