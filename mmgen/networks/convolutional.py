"""Convolutions of 4x4 down and up, fully connected layers next to z (WG on Fashion-MNIST, MultiMNIST, CelebA).

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), Section 4 and Table 1,
    arXiv:1802.05335; layer by layer in the authors' published code
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import nn

from mmgen.core.errors import SettingsError
from mmgen.networks._base import ACTIVATIONS, Conv2d, ConvTranspose2d, ImageNetwork, Reshape, dense_layers

__all__ = ["Convolutional"]

Size = Annotated[int, Field(ge=1)]
_KERNEL = 4


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class Convolutional(ImageNetwork):
    """Strided convolutions, with batch norm from the second one on; the defaults are WG's for CelebA.

    The decoder mirrors them. Where a mirrored layer would end a pixel short of the side that the encoder saw there (25
    pixels from 12), its kernel is 5x5, as in the authors' MultiMNIST.
    """

    channels: tuple[Size, ...] = (32, 64, 128, 256)
    """Feature maps of the encoder's convolutions."""
    strides: tuple[Size, ...] = (2, 2, 2, 1)
    """Their strides."""
    paddings: tuple[Annotated[int, Field(ge=0)], ...] = (1, 1, 1, 0)
    """Their paddings."""
    bias: bool = False
    """Whether convolutions have biases, which batch norm makes up for (WG have none)."""
    batch_norm: bool = True
    """Whether all convolutions but those that touch pixels are followed by batch norm."""
    fully_connected: tuple[Size, ...] = (512,)
    """Widths of the fully connected layers behind the encoder's convolutions."""
    decoder_fully_connected: tuple[Size, ...] | None = None
    """Widths of those before the decoder's; left out, the encoder's in reverse (on CelebA WG have none)."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the encoder's features that are dropped in training."""
    activation: Literal["elu", "relu", "silu"] = "silu"
    """Non-linearity; silu is Swish."""

    def _sides(self, shape: tuple[int, int, int]) -> list[tuple[int, int]]:
        """Return height and width of the feature maps before the first convolution and after each one."""
        if not len(self.channels) == len(self.strides) == len(self.paddings):
            raise SettingsError(
                f"image network convolutional got {len(self.channels)} channels, {len(self.strides)} strides and "
                f"{len(self.paddings)} paddings; give one of each per layer"
            )
        sides = [(shape[1], shape[2])]
        for stride, padding in zip(self.strides, self.paddings, strict=True):
            height, width = ((size + 2 * padding - _KERNEL) // stride + 1 for size in sides[-1])
            if min(height, width) < 1:
                raise SettingsError(
                    f"image network convolutional got images of {shape[1]}x{shape[2]}, which are too small for its "
                    f"{len(self.channels)} layers; use fewer layers, or mlp"
                )
            sides.append((height, width))
        return sides

    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        height, width = self._sides(shape)[-1]
        layers: list[nn.Module] = []
        before = shape[0]
        for number, (after, stride, padding) in enumerate(zip(self.channels, self.strides, self.paddings, strict=True)):
            layers.append(Conv2d(before, after, _KERNEL, stride, padding, bias=self.bias))
            layers += self._normalise_and_activate(after, batch_norm=number > 0)
            before = after
        sizes = [before * height * width, *self.fully_connected]
        layers += [nn.Flatten(), dense_layers(sizes, ACTIVATIONS[self.activation], activate_last=True)]
        if self.dropout:
            layers.append(nn.Dropout(self.dropout))
        return nn.Sequential(*layers), sizes[-1]

    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        sides = self._sides(shape)
        start = (self.channels[-1], *sides[-1])
        hidden = self.decoder_fully_connected
        widths = self.fully_connected[::-1] if hidden is None else hidden
        layers: list[nn.Module] = [
            dense_layers(
                [inputs, *widths, start[0] * start[1] * start[2]], ACTIVATIONS[self.activation], activate_last=True
            ),
            Reshape(start),
        ]
        outputs = [shape[0], *self.channels[:-1]]
        for number in reversed(range(len(self.channels))):
            stride, padding = self.strides[number], self.paddings[number]
            # What the transposed convolution lacks of the side that it mirrors.
            kernel = tuple(
                large - ((small - 1) * stride - 2 * padding)
                for large, small in zip(sides[number], sides[number + 1], strict=True)
            )
            layers.append(
                ConvTranspose2d(
                    self.channels[number], outputs[number], (kernel[0], kernel[1]), stride, padding, bias=self.bias
                )
            )
            if number > 0:
                layers += self._normalise_and_activate(outputs[number], batch_norm=True)
        return nn.Sequential(*layers)

    def _normalise_and_activate(self, channels: int, batch_norm: bool) -> list[nn.Module]:
        norm: list[nn.Module] = [nn.BatchNorm2d(channels)] if self.batch_norm and batch_norm else []
        return [*norm, ACTIVATIONS[self.activation]()]
