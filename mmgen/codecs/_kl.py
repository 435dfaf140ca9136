"""The autoencoder of latent diffusion models, by the names of tensors of the library diffusers.

References:
    High-Resolution Image Synthesis with Latent Diffusion Models (Rombach et al., 2022), arXiv:2112.10752
    diffusers, class AutoencoderKL, github.com/huggingface/diffusers (layers and names of tensors)
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from mmgen.codecs._base import Affine, Channels, Codec, Count, for_channels

_EPSILON = 1e-6


class KLAutoencoder(Codec):
    """Settings of the autoencoder of latent diffusion models, the diffusers class AutoencoderKL; z is its mean."""

    name: Literal["kl"] = "kl"
    latent_channels: Channels = 4
    """Channels of the grid."""
    channels: Annotated[tuple[Channels, ...], Field(min_length=1, max_length=8)] = (128, 256, 512, 512)
    """Feature maps of each stage; stages after the first halve the sides."""
    layers: Count = 2
    """Residual blocks of each stage of the encoder; the decoder has one more."""
    groups: Channels = 32
    """Groups of feature maps that are normalised together."""
    attention: bool = True
    """Whether places at the smallest size attend to each other."""
    quant_conv: bool = True
    """Whether a convolution of 1x1 follows the encoder."""
    post_quant_conv: bool = True
    """Whether a convolution of 1x1 precedes the decoder."""
    scaling_factor: Annotated[float, Field(gt=0)] = 0.18215
    """Factor of the encoder's output, after the shift."""
    shift_factor: float = 0.0
    """Number that is subtracted from the encoder's output."""

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        if any(width % self.groups for width in self.channels):
            raise ValueError(f"got {self.channels} feature maps in {self.groups} groups, expected multiples of it")
        return self

    @property
    def step(self) -> int:
        return 2 ** (len(self.channels) - 1)

    def latent_channels_of(self, channels: int) -> int:
        return self.latent_channels

    def build(self, channels: int) -> tuple[nn.Module, nn.Module]:
        factor, shift = self.scaling_factor, self.shift_factor
        encoder = nn.Sequential(Affine(2, -1), _Encoder(self), Affine(factor, -shift * factor))
        decoder = nn.Sequential(Affine(1 / factor, shift), _Decoder(self), Affine(0.5, 0.5))
        return for_channels(self.name, channels, encoder, decoder)


class _Residual(nn.Module):
    """Residual block: twice group norm, SiLU and a convolution."""

    def __init__(self, before: int, after: int, groups: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, before, _EPSILON)
        self.conv1 = nn.Conv2d(before, after, 3, padding=1)
        self.norm2 = nn.GroupNorm(groups, after, _EPSILON)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(before, after, 1) if before != after else None

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.conv1(functional.silu(self.norm1(x)))
        hidden = self.conv2(functional.silu(self.norm2(hidden)))
        updated: Tensor = hidden + (x if self.conv_shortcut is None else self.conv_shortcut(x))
        return updated


class _Attention(nn.Module):
    """Attention with one head among all places of a grid."""

    def __init__(self, width: int, groups: int) -> None:
        super().__init__()
        self.group_norm = nn.GroupNorm(groups, width, _EPSILON)
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width) for _ in range(3))
        self.to_out = nn.ModuleList([nn.Linear(width, width)])

    def forward(self, x: Tensor) -> Tensor:
        places = self.group_norm(x).flatten(2).transpose(1, 2)
        attended = functional.scaled_dot_product_attention(
            self.to_q(places).unsqueeze(1), self.to_k(places).unsqueeze(1), self.to_v(places).unsqueeze(1)
        )
        change: Tensor = self.to_out[0](attended.squeeze(1))
        return x + change.transpose(1, 2).reshape(x.shape)


class _Middle(nn.Module):
    """Blocks at the smallest size."""

    def __init__(self, codec: KLAutoencoder) -> None:
        super().__init__()
        width = codec.channels[-1]
        self.resnets = nn.ModuleList(_Residual(width, width, codec.groups) for _ in range(2))
        self.attentions = nn.ModuleList([_Attention(width, codec.groups)] if codec.attention else [])

    def forward(self, x: Tensor) -> Tensor:
        x = self.resnets[0](x)
        for attention in self.attentions:
            x = attention(x)
        after: Tensor = self.resnets[1](x)
        return after


class _Resample(nn.Module):
    """Convolution that halves the sides, or that follows their doubling."""

    def __init__(self, width: int, up: bool) -> None:
        super().__init__()
        self.up = up
        self.conv = nn.Conv2d(width, width, 3, padding=1) if up else nn.Conv2d(width, width, 3, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.interpolate(x, scale_factor=2.0) if self.up else functional.pad(x, (0, 1, 0, 1))
        resampled: Tensor = self.conv(x)
        return resampled


class _Stage(nn.Module):
    """Residual blocks of one size, then a change of size."""

    def __init__(self, before: int, after: int, layers: int, groups: int, resample: str) -> None:
        super().__init__()
        widths = [before, *[after] * layers]
        self.resnets = nn.ModuleList(_Residual(widths[n], widths[n + 1], groups) for n in range(layers))
        self.downsamplers = nn.ModuleList([_Resample(after, False)] if resample == "down" else [])
        self.upsamplers = nn.ModuleList([_Resample(after, True)] if resample == "up" else [])

    def forward(self, x: Tensor) -> Tensor:
        for layer in (*self.resnets, *self.downsamplers, *self.upsamplers):
            x = layer(x)
        return x


class _Encoder(nn.Module):
    """Encoder [B, 3, H, W] -> means [B, c, h, w]; pixels are from -1 to 1."""

    def __init__(self, codec: KLAutoencoder) -> None:
        super().__init__()
        widths, last = codec.channels, len(codec.channels) - 1
        self.conv_in = nn.Conv2d(3, widths[0], 3, padding=1)
        self.down_blocks = nn.ModuleList(
            _Stage(widths[max(0, n - 1)], widths[n], codec.layers, codec.groups, "down" if n < last else "")
            for n in range(len(widths))
        )
        self.mid_block = _Middle(codec)
        self.conv_norm_out = nn.GroupNorm(codec.groups, widths[-1], _EPSILON)
        self.conv_out = nn.Conv2d(widths[-1], 2 * codec.latent_channels, 3, padding=1)
        self.quant_conv = (
            nn.Conv2d(2 * codec.latent_channels, 2 * codec.latent_channels, 1) if codec.quant_conv else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv_in(x)
        for block in self.down_blocks:
            x = block(x)
        x = self.conv_out(functional.silu(self.conv_norm_out(self.mid_block(x))))
        mean: Tensor = self.quant_conv(x).chunk(2, 1)[0]
        return mean


class _Decoder(nn.Module):
    """Decoder [B, c, h, w] -> pixels from -1 to 1 [B, 3, H, W]."""

    def __init__(self, codec: KLAutoencoder) -> None:
        super().__init__()
        widths, last = codec.channels[::-1], len(codec.channels) - 1
        self.post_quant_conv = (
            nn.Conv2d(codec.latent_channels, codec.latent_channels, 1) if codec.post_quant_conv else nn.Identity()
        )
        self.conv_in = nn.Conv2d(codec.latent_channels, widths[0], 3, padding=1)
        self.mid_block = _Middle(codec)
        self.up_blocks = nn.ModuleList(
            _Stage(widths[max(0, n - 1)], widths[n], codec.layers + 1, codec.groups, "up" if n < last else "")
            for n in range(len(widths))
        )
        self.conv_norm_out = nn.GroupNorm(codec.groups, widths[-1], _EPSILON)
        self.conv_out = nn.Conv2d(widths[-1], 3, 3, padding=1)

    def forward(self, z: Tensor) -> Tensor:
        x = self.mid_block(self.conv_in(self.post_quant_conv(z)))
        for block in self.up_blocks:
            x = block(x)
        pixels: Tensor = self.conv_out(functional.silu(self.conv_norm_out(x)))
        return pixels
