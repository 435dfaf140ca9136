"""Tiny autoencoders: plain convolutions, a few million weights.

References:
    TAESD, Tiny AutoEncoder for Stable Diffusion (Bohan, 2023), github.com/madebyollin/taesd (layers and names of
    tensors; TAEF2 there has the pooled terms)
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from mmgen.codecs._base import Affine, Channels, Codec, Squash, for_channels

Stages = Annotated[tuple[Channels, ...], Field(min_length=1, max_length=8)]
Blocks = Annotated[tuple[Annotated[int, Field(ge=0, le=16)], ...], Field(min_length=1, max_length=8)]
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "swish": nn.SiLU, "mish": nn.Mish}


class TinyAutoencoder(Codec):
    """Settings of a tiny autoencoder such as TAESD and TAEF2, and of the diffusers class AutoencoderTiny."""

    name: Literal["tiny"] = "tiny"
    latent_channels: Channels = 4
    """Channels of the grid."""
    encoder_channels: Stages = (64, 64, 64, 64)
    """Feature maps of each stage of the encoder; stages after the first halve the sides."""
    encoder_blocks: Blocks = (1, 3, 3, 3)
    """Residual blocks of each stage of the encoder."""
    decoder_channels: Stages = (64, 64, 64, 64)
    """Feature maps of each stage of the decoder; stages but the last double the sides."""
    decoder_blocks: Blocks = (3, 3, 3, 1)
    """Residual blocks of each stage of the decoder."""
    activation: Literal["relu", "gelu", "silu", "swish", "mish"] = "relu"
    """Non-linearity within blocks."""
    pooled: bool = False
    """Whether blocks at the smallest size first add a normalised term to their input, as in TAEF2."""
    scaling_factor: Annotated[float, Field(gt=0)] = 1.0
    """Factor of the encoder's output."""

    @model_validator(mode="after")
    def _check_stages(self) -> Self:
        counts = {len(self.encoder_channels), len(self.encoder_blocks)}
        counts |= {len(self.decoder_channels), len(self.decoder_blocks)}
        if len(counts) > 1:
            raise ValueError(f"got lists of {sorted(counts)} stages, expected equally many stages everywhere")
        for channels in (self.encoder_channels, self.decoder_channels):
            if len(set(channels)) > 1:
                raise ValueError(f"got stages of {channels} feature maps, expected equally many in each stage")
        return self

    @property
    def step(self) -> int:
        return 2 ** (len(self.encoder_blocks) - 1)

    def latent_channels_of(self, channels: int) -> int:
        return self.latent_channels

    def build(self, channels: int) -> tuple[nn.Module, nn.Module]:
        encoder = nn.Sequential(self._encoder(), Affine(self.scaling_factor, 0))
        decoder = nn.Sequential(Affine(1 / self.scaling_factor, 0), Squash(), self._decoder())
        return for_channels(self.name, channels, encoder, decoder)

    def _encoder(self) -> nn.Sequential:
        width, last = self.encoder_channels[0], len(self.encoder_blocks) - 1
        layers: list[nn.Module] = []
        for stage, blocks in enumerate(self.encoder_blocks):
            layers.append(nn.Conv2d(width, width, 3, 2, 1, bias=False) if stage else nn.Conv2d(3, width, 3, padding=1))
            layers += [_Block(width, self.activation, self.pooled and stage == last) for _ in range(blocks)]
        return nn.Sequential(*layers, nn.Conv2d(width, self.latent_channels, 3, padding=1))

    def _decoder(self) -> nn.Sequential:
        width, last = self.decoder_channels[0], len(self.decoder_blocks) - 1
        layers: list[nn.Module] = [
            nn.Conv2d(self.latent_channels, width, 3, padding=1),
            ACTIVATIONS[self.activation](),
        ]
        for stage, blocks in enumerate(self.decoder_blocks):
            layers += [_Block(width, self.activation, self.pooled and stage == 0) for _ in range(blocks)]
            layers += [] if stage == last else [nn.Upsample(scale_factor=2, mode="nearest")]
            layers.append(nn.Conv2d(width, 3 if stage == last else width, 3, padding=1, bias=stage == last))
        return nn.Sequential(*layers)


class _Block(nn.Module):
    """Residual block of three convolutions."""

    def __init__(self, width: int, activation: str, pooled: bool) -> None:
        super().__init__()
        activate = ACTIVATIONS[activation]
        self.conv = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), activate(), nn.Conv2d(width, width, 3, padding=1), activate(),
            nn.Conv2d(width, width, 3, padding=1),
        )  # fmt: skip
        self.pool = (
            nn.Sequential(
                nn.Conv2d(width, 4 * width, 1, bias=False), nn.GroupNorm(4, 4 * width), nn.ReLU(),
                nn.Conv2d(4 * width, width, 1, bias=False),
            )
            if pooled
            else None
        )  # fmt: skip
        self.fuse = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        if self.pool is not None:
            x = x + self.pool(x)
        fused: Tensor = self.fuse(self.conv(x) + x)
        return fused
