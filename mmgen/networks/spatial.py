"""Networks that keep places: from pixels to the places of a grid z [C, h, w], and back.

References:
    High-Resolution Image Synthesis with Latent Diffusion Models (Rombach et al., 2022), arXiv:2112.10752: z with places
    Deep Residual Learning for Image Recognition (He et al., 2016), arXiv:1512.03385
"""

from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.core.errors import SettingsError
from mmgen.networks._base import Conv2d, Grid, ImageNetwork

__all__ = ["Spatial"]

_GROUPS = 8
_LEAST = 32
"""Feature maps at fine resolutions at least."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class Spatial(ImageNetwork):
    """Residual convolutions between pixels and the places of z, for a ``model.latent_size`` of [C, h, w].

    The sides of images are those of z times a power of two. Nothing is computed at full resolution: pixels are folded
    into channels of maps of half the side, and the last layer unfolds them.
    """

    keeps_places: ClassVar[bool] = True

    width: Annotated[int, Field(ge=_LEAST, multiple_of=_GROUPS)] = 128
    """Feature maps at the places of z; half as many at twice the side, at least 32."""
    encoder_blocks: Annotated[int, Field(ge=1)] = 1
    """Residual blocks of the encoder at each resolution."""
    decoder_blocks: Annotated[int, Field(ge=1)] = 1
    """Residual blocks of the decoder at each resolution."""

    def on_places(self, grid: Grid | None) -> ImageNetwork:
        if grid is None:
            raise SettingsError(
                "image network spatial got a z that is a vector, expected places; use --set model.latent_size=[4,8,8], "
                "or another model.image_network.name"
            )
        return _OnPlaces(self, grid)

    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        return self.on_places(None).encoder(shape)

    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        return self.on_places(None).decoder(inputs, shape)


class _OnPlaces(ImageNetwork):
    """Networks of settings and a shape of z; features of the encoder are maps [F, h, w], flattened."""

    def __init__(self, settings: Spatial, grid: Grid) -> None:
        self.settings, self.grid = settings, grid

    def _plan(self, shape: tuple[int, int, int]) -> tuple[int, list[int]]:
        """Return the side of squares of pixels that are folded, and feature maps by resolution, finest first."""
        factor = shape[1] // self.grid[1]
        fits = [self.grid[1] * factor, self.grid[2] * factor] == list(shape[1:])
        if not fits or factor & (factor - 1):
            raise SettingsError(
                f"model.latent_size got places {self.grid[1]}x{self.grid[2]} for images of {shape[1]}x{shape[2]}, "
                "expected both sides of the image to be those of z times the same power of two; change "
                "model.latent_size"
            )
        patch = min(2, factor)
        halvings = (factor // patch).bit_length() - 1
        widths = [max(_LEAST, self.settings.width >> number) // _GROUPS * _GROUPS for number in range(halvings + 1)]
        return patch, widths[::-1]

    def encoder(self, shape: tuple[int, int, int]) -> tuple[nn.Module, int]:
        patch, widths = self._plan(shape)
        layers: list[nn.Module] = [nn.PixelUnshuffle(patch), Conv2d(shape[0] * patch**2, widths[0], 3, 1, 1)]
        layers += _blocks(widths[0], self.settings.encoder_blocks)
        for before, after in pairwise(widths):
            layers += [Conv2d(before, after, 3, 2, 1), *_blocks(after, self.settings.encoder_blocks)]
        layers += [nn.GroupNorm(_GROUPS, widths[-1]), nn.SiLU(), nn.Flatten()]
        return nn.Sequential(*layers), widths[-1] * self.grid[1] * self.grid[2]

    def decoder(self, inputs: int, shape: tuple[int, int, int]) -> nn.Module:
        patch, widths = self._plan(shape)
        layers = _blocks(widths[-1], self.settings.decoder_blocks)
        for before, after in pairwise(reversed(widths)):
            layers += [nn.Upsample(scale_factor=2), Conv2d(before, after, 3, 1, 1)]
            layers += _blocks(after, self.settings.decoder_blocks)
        layers += [nn.GroupNorm(_GROUPS, widths[0]), nn.SiLU()]
        layers += [Conv2d(widths[0], shape[0] * patch**2, 3, 1, 1), nn.PixelShuffle(patch)]
        return _Decoder(self.grid, inputs, widths[-1], nn.Sequential(*layers))


class _Decoder(nn.Module):
    """Decoder from a flat grid [B, C h w], and words beside it, to pixels."""

    def __init__(self, grid: Grid, inputs: int, width: int, layers: nn.Module) -> None:
        super().__init__()
        self.grid, self.size = grid, grid[0] * grid[1] * grid[2]
        self.first = Conv2d(grid[0], width, 3, 1, 1)
        self.everywhere = nn.Linear(inputs - self.size, width) if inputs > self.size else None
        self.layers = layers

    def forward(self, z: Tensor) -> Tensor:
        maps = self.first(z[:, : self.size].unflatten(1, self.grid))
        if self.everywhere is not None:
            maps = maps + self.everywhere(z[:, self.size :])[:, :, None, None]
        pixels: Tensor = self.layers(maps)
        return pixels


class _Block(nn.Module):
    """Two convolutions with a residual connection; the block starts as the identity."""

    def __init__(self, width: int) -> None:
        super().__init__()
        last = Conv2d(width, width, 3, 1, 1)
        nn.init.zeros_(last.weight)
        self.layers = nn.Sequential(
            nn.GroupNorm(_GROUPS, width),
            nn.SiLU(),
            Conv2d(width, width, 3, 1, 1),
            nn.GroupNorm(_GROUPS, width),
            nn.SiLU(),
            last,
        )

    def forward(self, maps: Tensor) -> Tensor:
        found: Tensor = maps + self.layers(maps)
        return found


def _blocks(width: int, number: int) -> list[nn.Module]:
    return [_Block(width) for _ in range(number)]
