"""Convolutions of torch, computed in full precision where torch's bf16 gradients are wrong."""

import torch
from torch import Tensor, nn

__all__ = ["Conv2d", "ConvTranspose2d"]


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
