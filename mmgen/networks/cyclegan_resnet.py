"""Residual networks with instance norm, in the style of CycleGAN's generator (CK Section 5.1).

References:
    Unpaired Image-to-Image Translation using Cycle-Consistent Adversarial Networks (Zhu, Park, Isola, Efros, 2017),
    arXiv:1703.10593
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Section 5.1
"""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.core.errors import SettingsError
from mmgen.networks._base import Conv2d, ConvTranspose2d, ImageNetwork, Reshape

__all__ = ["CycleganResnet"]

Size = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class CycleganResnet(ImageNetwork):
    """CycleGAN's network: two layers halve the side, residual blocks work on a quarter of it, two layers double it.

    CK do not say how 10 x 10 positions become an image: here they are resized to a quarter of its side before the
    blocks. Nor how wide the flattened representation is: here a layer of ``maps`` channels ends the encoder, as it
    begins the decoder.
    """

    width: Size = 64
    """Feature maps at full resolution (CycleGAN: 64); twice as many at half the side, four times at a quarter."""
    blocks: Size = 3
    """Residual blocks (CK: 3)."""
    features: Size = 200
    """Width of the encoder's output (CK: 200)."""
    maps: Size = 10
    """Channels of the map between fully connected layers and blocks (CK: 10)."""
    side: Size = 10
    """Side of that map in the decoder (CK: 1000 values in 10 channels)."""

    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        height, width = self._quarter_size(shape)
        layers: list[nn.Module] = [_padded_convolution(shape[0], self.width, 7), *_normalise_and_activate(self.width)]
        for before in (self.width, 2 * self.width):
            layers += [Conv2d(before, 2 * before, 3, 2, 1), *_normalise_and_activate(2 * before)]
        layers += [_Block(4 * self.width) for _ in range(self.blocks)]
        layers += [Conv2d(4 * self.width, self.maps, 1), nn.ReLU(), nn.Flatten()]
        layers.append(nn.Linear(self.maps * height * width, self.features))
        return nn.Sequential(*layers), self.features

    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        layers: list[nn.Module] = [
            nn.Linear(inputs, self.maps * self.side**2),
            Reshape((self.maps, self.side, self.side)),
            nn.Upsample(self._quarter_size(shape), mode="bilinear", align_corners=False),
            _padded_convolution(self.maps, 4 * self.width, 3),
            *_normalise_and_activate(4 * self.width),
            *(_Block(4 * self.width) for _ in range(self.blocks)),
        ]
        for before in (4 * self.width, 2 * self.width):
            layers += [
                ConvTranspose2d(before, before // 2, 3, 2, 1, output_padding=1),
                *_normalise_and_activate(before // 2),
            ]
        layers.append(_padded_convolution(self.width, shape[0], 7))
        return nn.Sequential(*layers)

    def _quarter_size(self, shape: tuple[int, int, int]) -> tuple[int, int]:
        """Return height and width divided by 4, the size on which the residual blocks work."""
        if shape[1] % 4 or shape[2] % 4:
            raise SettingsError(
                f"image network cyclegan-resnet got images of {shape[1]}x{shape[2]}, expected sides divisible by 4; "
                "choose another --size or image network"
            )
        return shape[1] // 4, shape[2] // 4


def _padded_convolution(before: int, after: int, kernel: int) -> nn.Module:
    return Conv2d(before, after, kernel, padding=kernel // 2, padding_mode="reflect")


def _normalise_and_activate(channels: int) -> list[nn.Module]:
    return [nn.InstanceNorm2d(channels), nn.ReLU()]


class _Block(nn.Module):
    """Residual block x + conv(relu(conv(x))), each convolution followed by instance norm."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            _padded_convolution(channels, channels, 3),
            *_normalise_and_activate(channels),
            _padded_convolution(channels, channels, 3),
            nn.InstanceNorm2d(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.layers(x)
        return result
