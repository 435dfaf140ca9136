"""A pretrained autoencoder as a model: z is its grid of latents, and only readers of words are trained.

References:
    High-Resolution Image Synthesis with Latent Diffusion Models (Rombach et al., 2022), arXiv:2112.10752 (densities on
    the latents of an autoencoder that was trained before)
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from mmgen.codecs import Codec, KLAutoencoder, Pixels, TinyAutoencoder, read_pretrained
from mmgen.core.batch import Batch
from mmgen.core.errors import ArtifactError, SettingsError, UsageError
from mmgen.inference import Inputs
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.modalities import Modality
from mmgen.modalities.image import Image
from mmgen.models._base import Demands
from mmgen.models._gaussian_model import GaussianModel
from mmgen.models._parts import Examples, Preparation, available_modalities, networks_by_kind
from mmgen.models._settings import DataSettings, ModelSettings
from mmgen.networks import AttributeNetwork, GridReader, TextNetwork

__all__ = ["Autoencoder"]

_PICTURES = 16
"""Pictures that go through the networks at once where no gradient is needed; bounds the memory of feature maps."""
_GREY_LEVEL = 1 / 255
_COST = 0.3
"""Decibels that the noise of q(z | picture) may cost."""
_SEARCH = (-7.0, 1.0)
_LARGEST_CODE = 1e6  # of z, whose prior is N(0, 1)
"""Range of log sd in which the noise is searched."""


class AutoencoderSettings(ModelSettings):
    """Settings of a pretrained autoencoder with networks that read words off its latents."""

    example: ClassVar[Mapping[str, Any]] = {"codec": {"name": "pixels"}}

    name: Literal["autoencoder"] = "autoencoder"
    """The kind of model."""
    weights: Annotated[str | None, Field(exclude=True)] = None
    """Folder of the pretrained weights: of the library diffusers (AutoencoderKL or AutoencoderTiny), or two files of a
    tiny autoencoder. Only training reads it; the checkpoint then holds the weights."""
    codec: Annotated[TinyAutoencoder | KLAutoencoder | Pixels, Field(discriminator="name")] | None = None
    """The networks; left out, those of the folder of weights. "pixels" needs no weights: z is the pixels themselves,
    and each square of ``codec.patch`` pixels (8) gives the channels of one place."""
    noise: Annotated[float, Field(gt=0, le=2)] | None = None
    """Standard deviation of q(z | picture) around the encoder's output; left out, measured on training pictures: the
    largest that costs 0.3 dB of the reconstruction, and for pixels one grey level."""
    reader: GridReader = Field(default_factory=GridReader)
    """Networks from z to features, from which words are read."""
    attribute_network: AttributeNetwork = Field(default_factory=AttributeNetwork)
    """Widths of the networks from features to attributes."""
    text_network: TextNetwork | None = None
    """Widths of the networks from features to sentences; left out, small ones."""

    def latent_space(self, data: DataSettings) -> LatentSpace | None:
        shapes = [image.shape for image in data.images.values()]
        return LatentSpace.grid(*self.codec.grid(shapes[0])) if self.codec and shapes else None


class _PictureDecoder(nn.Module):
    """Decoder from z [B, D] to mean and spread of a quantised normal [B, 2 C, H, W]; the spread is one number.

    Args:
        decoder: Network from grids to pictures in [0, 1].
        shape: Shape (c, h, w) of the grids.
    """

    def __init__(self, decoder: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.decoder, self.shape = decoder, shape
        self.spread = nn.Parameter(torch.tensor(-3.0))

    def pictures(self, z: Tensor) -> Tensor:
        """Return pictures [B, C, H, W] of z [B, D], from 0 to 1 or a little beyond."""
        grids = z.unflatten(-1, self.shape)
        if torch.is_grad_enabled() or torch.compiler.is_exporting():
            pictures: Tensor = self.decoder(grids)
            return pictures
        return torch.cat([self.decoder(part) for part in grids.split(_PICTURES)])

    def forward(self, z: Tensor) -> Tensor:
        mean = self.pictures(z) - 0.5
        return torch.cat([mean, self.spread.to(mean.dtype).expand_as(mean)], 1)

    @torch.no_grad()
    def set_spread(self, error: float) -> None:
        """Set the standard deviation of pixels to the root mean squared ``error``."""
        # The likelihood adds half a level to softplus(spread) / 4.
        excess = max(4 * (error - _GREY_LEVEL / 2), 1e-6)
        self.spread.fill_(math.log(math.expm1(excess)))


class Autoencoder(GaussianModel):
    r"""Pretrained encoder and decoder with :math:`q(z|x) = N(e(x), s^2)`, and trained networks for p(words | z).

    Encoder and noise are fixed. The decoder is fixed too unless the objective generates pictures.

    Args:
        image: The pictures.
        grid: Shape (c, h, w) of z.
        encoder: Network from pictures [B, C, H, W] to grids [B, c, h, w].
        decoder: Network back.
        words: For each modality of words, its generated form and its network from z [B, D].
        trains_decoder: Whether the decoder is trained.
    """

    settings = AutoencoderSettings
    lasting_facts = ("autoencoder",)
    noise: Tensor

    def __init__(
        self,
        image: Image,
        grid: tuple[int, int, int],
        encoder: nn.Module,
        decoder: nn.Module,
        words: Mapping[str, tuple[Modality, nn.Module]],
        trains_decoder: bool,
    ) -> None:
        super().__init__()
        self.latent, self.image, self.trains_decoder = LatentSpace.grid(*grid), image, trains_decoder
        self.encoder = encoder.requires_grad_(False)
        picture_decoder = _PictureDecoder(decoder, grid).requires_grad_(trains_decoder)
        self.modalities = {image.name: image, **{name: modality for name, (modality, _) in words.items()}}
        self.decoders = nn.ModuleDict({image.name: picture_decoder, **{name: pair[1] for name, pair in words.items()}})
        self.register_buffer("noise", torch.tensor(0.05))

    @classmethod
    def complete_settings(
        cls, settings: AutoencoderSettings, demands: Demands, data: DataSettings
    ) -> AutoencoderSettings:
        """Return the settings with the codec of the folder of weights, and a text network if text is generated.

        Raises:
            SettingsError: Neither a codec nor a folder is set, both contradict each other, or a setting has no effect.
        """
        _check_effective(settings)
        filled: dict[str, Any] = {}
        if settings.weights is not None:
            codec = read_pretrained(Path(settings.weights)).codec
            if settings.codec not in (None, codec):
                raise SettingsError(
                    f"model.codec got {settings.codec}, but the weights in {settings.weights} are of {codec}; leave "
                    "one of the two out"
                )
            filled["codec"] = codec
        elif settings.codec is None:
            raise SettingsError(
                "setting 'model.weights' is missing, expected the folder of a pretrained autoencoder; give --set "
                "model.weights=FOLDER, or --set model.codec.name=pixels for z of pixels without any weights"
            )
        if any(each.kind == "text" for name, each in data.modalities.items() if name in demands.generates):
            filled["text_network"] = settings.text_network or TextNetwork(embedding=32, hidden=96, head=96, dropout=0.2)
        return settings.model_copy(update=filled)

    @classmethod
    def build(cls, settings: AutoencoderSettings, demands: Demands, data: DataSettings) -> "Autoencoder":
        assert settings.codec is not None, "settings are completed before they are built"
        available = available_modalities(data, {"image": "quantised-normal"}, demands.modalities)
        inputs = next(iter(demands.posteriors)) if len(demands.posteriors) == 1 else ()
        name = inputs[0] if len(inputs) == 1 else ""
        image = available.get(name)
        if not isinstance(image, Image):
            raise SettingsError(
                f"model autoencoder infers z from {name or 'one modality alone'}, expected a picture; set "
                "objective.given to the name of a picture"
            )
        own = {
            "image": None,
            "attributes": settings.attribute_network,
            "text": settings.text_network or TextNetwork(),
        }
        networks = networks_by_kind(data, own, {})
        grid = settings.codec.grid(image.shape)
        encoder, decoder = settings.codec.build(image.shape[0])
        words = {}
        for each in demands.generates:
            if each == name:
                continue
            if isinstance(available[each], Image):
                raise SettingsError(
                    f"model autoencoder got {each} to generate, expected words or {name}, since it decodes one "
                    "picture; leave it out of objective.modalities"
                )
            features, size = settings.reader.build(grid)
            modality, head = available[each].decoder(size, networks[available[each].kind])
            words[each] = modality, nn.Sequential(features, head)
        return cls(image, grid, encoder, decoder, words, trains_decoder=name in demands.generates)

    @property
    def capabilities(self) -> frozenset[str]:
        return super().capabilities | {"fixed encoder"}

    @property
    def encodes_once(self) -> str:
        return "" if self.trains_decoder else self.image.name

    def has_posterior(self, inputs: Inputs) -> bool:
        return inputs in ((), (self.image.name,))

    def posterior(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        if not self.has_posterior(inputs):
            raise UsageError(
                f"this autoencoder has no q(z | {', '.join(inputs)}), expected q(z | {self.image.name}); fit one with "
                "mmgen fit-aggregate"
            )
        if not inputs:
            return DiagonalGaussian.standard(batch.size, self.latent_size, like=self.noise)
        value = batch.values[self.image.name]
        mean = value if value.dim() == 2 else self.encode_pictures(value)
        return DiagonalGaussian(mean, self.noise.log().to(mean.dtype).expand_as(mean))

    @torch.no_grad()
    def encode_pictures(self, pictures: Tensor) -> Tensor:
        """Return the encoder's output [B, D] for pictures [B, C, H, W]."""
        parts = [self.encoder(part) for part in pictures.split(_PICTURES)]
        mean = torch.cat(parts).flatten(1)
        return mean if mean.dtype == torch.float64 else mean.float()

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        return self._run_decoder(name, z)

    def mean(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """Return E[x_name | z] of words; of pictures the decoder's own output, cut to [0, 1]."""
        if name != self.image.name:
            return super().mean(name, z, condition)
        # E[x | z] itself would make black and white greyer, by up to 0.4 standard deviations.
        pictures = self._picture_decoder.pictures(z.reshape(-1, z.shape[-1])).clamp(0, 1)
        return pictures.reshape(*z.shape[:-1], *pictures.shape[1:])

    def inference_parameters(self) -> list[nn.Parameter]:
        return list(self.encoder.parameters())

    @property
    def _picture_decoder(self) -> _PictureDecoder:
        found = self.decoders[self.image.name]
        assert isinstance(found, _PictureDecoder)
        return found

    @torch.no_grad()
    def prepare(self, settings: AutoencoderSettings, training: Examples, validation: Examples) -> Preparation:
        """Read the pretrained weights, and measure noise and reconstruction on pictures.

        Raises:
            SettingsError: There are no weights for a codec that needs them.
            ArtifactError: The weights are damaged or do not fit.
        """
        facts: dict[str, Any] = {"weights": "pixels"}
        if settings.weights is not None:
            pretrained = read_pretrained(Path(settings.weights))
            pretrained.load_into(self.encoder, self._picture_decoder.decoder)
            facts = {"weights": pretrained.name, "sha256": pretrained.digest, "licence": pretrained.licence}
        elif not isinstance(settings.codec, Pixels):
            raise SettingsError(
                "setting 'model.weights' is missing, expected the folder of the weights of model.codec; give --set "
                "model.weights=FOLDER"
            )
        pictures = [examples(count).values[self.image.name] for examples, count in ((training, 32), (validation, 200))]
        self.to(pictures[0].device)
        self.noise.fill_(settings.noise or self._measure_noise(settings.codec, pictures[0]))
        noise = float(self.noise)
        self._picture_decoder.set_spread(math.sqrt(self._squared_errors(pictures[0], noise).mean()))
        psnr = _decibels(self._squared_errors(pictures[1], 0.0))
        if math.isnan(psnr):
            raise ArtifactError(
                f"the autoencoder {settings.weights} makes numbers that are not finite of pictures, expected pictures: "
                "look at scaling_factor in its config.json, or use another autoencoder"
            )
        size = float(self.encode_pictures(pictures[1]).abs().max())
        if size > _LARGEST_CODE:
            raise ArtifactError(
                f"the autoencoder {settings.weights} encodes pictures as numbers up to {size:.1g}, expected about 1: "
                "make scaling_factor in its config.json smaller, or use another autoencoder"
            )
        facts |= {"noise": noise, "psnr": None if math.isinf(psnr) else psnr, "psnr_pictures": len(pictures[1])}
        quality = "without loss" if math.isinf(psnr) else f"with a PSNR of {psnr:.1f} dB"
        shape = "x".join(map(str, self.latent.shapes["z"]))
        note = (
            f"{facts['weights']} keeps {len(pictures[1])} validation pictures {quality}; z is {shape}, with noise of "
            f"{noise:.3g}."
        )
        return Preparation({"autoencoder": facts}, {"weights": facts.get("sha256", "")}, note)

    def _measure_noise(self, codec: Codec | None, pictures: Tensor) -> float:
        """Return the largest standard deviation of noise on z that costs 0.3 dB, by bisection of its logarithm."""
        if isinstance(codec, Pixels):
            return 2 * _GREY_LEVEL  # z is twice a pixel
        least = _decibels(self._squared_errors(pictures, 0.0)) - _COST
        low, high = _SEARCH
        for _ in range(7):
            middle = (low + high) / 2
            within = _decibels(self._squared_errors(pictures, math.exp(middle))) >= least
            low, high = (middle, high) if within else (low, middle)
        return math.exp(low)

    def _squared_errors(self, pictures: Tensor, noise: float) -> Tensor:
        """Return the mean squared error [B] of pictures that are decoded from their encoding plus noise."""
        z = self.encode_pictures(pictures)
        generator = torch.Generator().manual_seed(0)
        z = z + noise * torch.randn(z.shape, generator=generator).to(z)
        decoded = self._picture_decoder.pictures(z).clamp(0, 1)
        return functional.mse_loss(decoded, pictures, reduction="none").flatten(1).mean(1)


def _decibels(squared_errors: Tensor) -> float:
    """Return the peak signal-to-noise ratio in dB, averaged over pictures; infinite without error."""
    if float(squared_errors.max()) < 1e-12:
        return math.inf
    return float(-10 * squared_errors.clamp_min(1e-12).log10().mean())


def _check_effective(settings: AutoencoderSettings) -> None:
    """Refuse settings of encoders of words, which this model lacks, and of a decoder that has weights already."""
    unused: list[tuple[str, object, tuple[str, ...]]] = [
        ("attribute_network", settings.attribute_network, ("embedding", "hidden")),
        ("text_network", settings.text_network, ("encoder", "bidirectional")),
    ]
    for name, network, fields in unused:
        for field in fields if network is not None else ():
            if getattr(network, field) != getattr(type(network)(), field):
                raise SettingsError(
                    f"setting 'model.{name}.{field}' got {getattr(network, field)}, but model autoencoder reads words "
                    "off z and encodes none; leave it out"
                )
    if settings.output_bias != "default":
        raise SettingsError(
            f"setting 'model.output_bias' got '{settings.output_bias}', but the decoder of model autoencoder has "
            "pretrained weights; leave it out"
        )
