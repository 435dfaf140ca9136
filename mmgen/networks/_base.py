"""What every family of image networks offers, and the small blocks that several rooms share."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from torch import Tensor, nn

__all__ = ["ACTIVATIONS", "ImageNetwork", "mlp"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
}


class ImageNetwork(ABC):
    """A pair of an encoder and a decoder of one style; members are frozen dataclasses of their settings."""

    @classmethod
    def for_sides(cls, sides: Collection[int]) -> dict[str, Any]:
        """Settings other than the defaults for images of these sides; none where the defaults fit, or nothing does."""
        return {}

    @abstractmethod
    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        """A network [B, C, H, W] -> [B, F] for images of ``shape``, and F."""

    @abstractmethod
    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        """A network [B, inputs] -> [B, C, H, W] for decoder outputs of ``shape``."""


def mlp(sizes: Sequence[int], activation: type[nn.Module] = nn.ELU, last: bool = False) -> nn.Sequential:
    """Linear layers of the given sizes with an activation between them (and after the last one if ``last``)."""
    layers: list[nn.Module] = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if last or i < len(sizes) - 2:
            layers.append(activation())
    return nn.Sequential(*layers)


class Reshape(nn.Module):
    """[B, prod(shape)] -> [B, *shape]."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], *self.shape)
