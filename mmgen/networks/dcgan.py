"""Networks of VE Appendix A.4: a convolutional encoder with batch norm and the DCGAN decoder.

References:
    Unsupervised Representation Learning with Deep Convolutional GANs (Radford, Metz, Chintala, 2016), arXiv:1511.06434
"""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import nn

from mmgen.core.errors import SettingsError
from mmgen.networks._base import ACTIVATIONS, Conv2d, ConvTranspose2d, ImageNetwork, Reshape

__all__ = ["Dcgan"]

Size = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class Dcgan(ImageNetwork):
    """DCGAN's decoder, of 1024 to 128 channels up from 4x4 pixels, with VE's encoder of 32 to 128 channels (A.4)."""

    channels: tuple[Size, ...] = (32, 64, 128, 16)
    """Feature maps of the encoder's convolutions."""
    kernels: tuple[Size, ...] = (5, 5, 5, 1)
    """Their kernel sizes."""
    strides: tuple[Size, ...] = (1, 2, 2, 1)
    """Their strides. VE print 1, 2, 2, 2; their published settings use 1, 2, 2, 1, which suits a 1x1 kernel."""
    decoder_width: Size = 128
    """Channels of the decoder's last hidden layer; each earlier one has twice as many."""
    activation: Literal["elu", "relu", "silu"] = "elu"
    """Non-linearity (VE use ELU throughout)."""

    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        if not len(self.channels) == len(self.kernels) == len(self.strides):
            raise SettingsError(
                "image network dcgan got channels, kernels and strides of different lengths; give one per layer"
            )
        layers: list[nn.Module] = []
        before, height, width = shape
        for after, kernel, stride in zip(self.channels, self.kernels, self.strides, strict=True):
            layers += [
                Conv2d(before, after, kernel, stride, padding=kernel // 2, bias=False),
                nn.BatchNorm2d(after),
                ACTIVATIONS[self.activation](),
            ]
            before = after
            height, width = ((size + 2 * (kernel // 2) - kernel) // stride + 1 for size in (height, width))
        return nn.Sequential(*layers, nn.Flatten()), before * height * width

    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        channels, height, width = shape
        doublings = 0
        while min(height, width) // 2**doublings > 4 and height % 2 ** (doublings + 1) == 0 == width % 2 ** (
            doublings + 1
        ):
            doublings += 1
        if doublings == 0:
            raise SettingsError(
                f"image network dcgan got images of {height}x{width}, expected even sides of at least 8; use mlp"
            )
        widths = [self.decoder_width * 2**i for i in reversed(range(doublings))]
        start = (widths[0], height // 2**doublings, width // 2**doublings)
        layers: list[nn.Module] = [
            nn.Linear(inputs, start[0] * start[1] * start[2], bias=False),
            Reshape(start),
            nn.BatchNorm2d(start[0]),
            ACTIVATIONS[self.activation](),
        ]
        for before, after in pairwise(widths):
            layers += [
                ConvTranspose2d(before, after, 5, 2, padding=2, output_padding=1, bias=False),
                nn.BatchNorm2d(after),
                ACTIVATIONS[self.activation](),
            ]
        layers.append(ConvTranspose2d(widths[-1], channels, 5, 2, padding=2, output_padding=1))
        return nn.Sequential(*layers)
