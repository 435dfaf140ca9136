"""The base of families of image networks, and small blocks that several rooms share."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from mmgen.core.errors import SettingsError


def _are_single_pixels(maps: Tensor) -> bool:
    """Return whether feature maps are of one pixel, [B, C, 1, 1], on a CPU."""
    # There the bf16 convolutions of torch 2.13 leave gradients of weights that only ever meet padding uninitialised
    # (strides of 2, kernels of 5): whatever was in memory, often no finite number, another result for the same seed.
    return maps.device.type == "cpu" and maps.shape[-2:] == (1, 1)


class Conv2d(nn.Conv2d):
    """``torch.nn.Conv2d`` with right gradients also for maps of 1x1 pixels in bf16."""

    def forward(self, input: Tensor) -> Tensor:
        if not _are_single_pixels(input):
            return super().forward(input)
        with torch.autocast("cpu", enabled=False):
            return super().forward(input.to(self.weight.dtype))


class ConvTranspose2d(nn.ConvTranspose2d):
    """``torch.nn.ConvTranspose2d`` with right gradients also for maps of 1x1 pixels in bf16."""

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        if not _are_single_pixels(input):
            return super().forward(input, output_size)
        with torch.autocast("cpu", enabled=False):
            return super().forward(input.to(self.weight.dtype), output_size)


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
}


Sizes = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]
"""Widths or numbers of feature maps, one at least."""
Grid = tuple[int, int, int]
"""Shape (C, h, w) of a z with places."""


class ImageNetwork(ABC):
    """Base of families of image networks, each an encoder and a decoder; members are dataclasses of their settings."""

    finer: ClassVar[tuple[dict[str, Any], ...]] = ()
    """Settings in place of the defaults, by falling :attr:`step`; :meth:`settings_for_sides` takes the first to fit."""

    keeps_places: ClassVar[bool] = False
    """Whether the networks are for a z that is a grid of places; they come from :meth:`on_places` then."""

    @property
    def step(self) -> int:
        """Number of pixels that must divide both sides of an image."""
        return 1

    @classmethod
    def settings_for_sides(cls, sides: Collection[int]) -> dict[str, Any]:
        """Return settings that suit images with these sides in pixels; {} to keep the defaults."""
        return next((finer for finer in cls.finer if not any(side % cls(**finer).step for side in sides)), {})

    def on_places(self, grid: Grid | None) -> "ImageNetwork":
        """Return the network for a z of this shape; members that keep places override it.

        Args:
            grid: Shape (C, h, w) of z; None for a vector.

        Raises:
            SettingsError: The network is not for such a z.
        """
        if grid is not None:
            raise SettingsError(
                f"model.latent_size got {list(grid)}, a grid, but image network {_member_name(self)} knows no places; "
                "use --set model.image_network.name=spatial, or give a single number"
            )
        return self

    @abstractmethod
    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        """Return a network from images [B, C, H, W] of ``shape`` (C, H, W) to features [B, F], and F."""

    @abstractmethod
    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        """Return a network from vectors [B, inputs] to decoder outputs [B, C, H, W] of ``shape`` (C, H, W)."""


def _member_name(network: ImageNetwork) -> str:
    """Return the name by which settings know a family of networks."""
    return type(network).__module__.rpartition(".")[2].replace("_", "-")


def dense_layers(
    sizes: Sequence[int], activation: type[nn.Module] = nn.ELU, activate_last: bool = False
) -> nn.Sequential:
    """Return linear layers of these widths with an activation after each; after the last only if ``activate_last``."""
    layers: list[nn.Module] = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if activate_last or i < len(sizes) - 2:
            layers.append(activation())
    return nn.Sequential(*layers)


def divide_sides(network: str, shape: tuple[int, int, int], step: int, setting: str) -> tuple[int, int]:
    """Return height and width of images of ``shape`` (C, H, W), divided by ``step`` pixels."""
    if shape[1] % step or shape[2] % step:
        raise SettingsError(
            f"image network {network} got images of {shape[1]}x{shape[2]}, expected sides divisible by {step}; "
            f"use images of another size, or change the network's {setting}"
        )
    return shape[1] // step, shape[2] // step


def cell_coordinates(sides: tuple[int, int]) -> Tensor:
    """Return the row and the column of each cell of a grid, scaled to -1 ... 1: [2, *sides]."""
    rows, columns = (torch.linspace(-1, 1, side) for side in sides)
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))


class Reshape(nn.Module):
    """Layer that reshapes [B, prod(shape)] to [B, *shape]."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], *self.shape)
