"""The networks of a sharpener: a residual generator, and a discriminator, both conditioned on words.

References:
    Generating Images from Captions with Attention (Mansimov et al., 2016), arXiv:1511.02793, Section 4
    Image-to-Image Translation with Conditional Adversarial Networks (Isola et al., 2017), arXiv:1611.07004: patches
    cGANs with Projection Discriminator (Miyato, Koyama, 2018), arXiv:1802.05637
    FiLM: Visual Reasoning with a General Conditioning Layer (Perez et al., 2018), arXiv:1709.07871
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from mmgen.artifacts import Header
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.generation.model_data import TrainedSharpener
from mmgen.modalities import Description
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.text import TextDescription
from mmgen.models import DataSettings
from mmgen.networks import AttributeNetwork, AttributeVectorEncoder, TextNetwork, text_encoder
from mmgen.settings.config import Settings, validate
from mmgen.training.settings import TrainingSettings
from mmgen.training.stage import load_trained

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SharpenerSettings(Settings):
    """Settings of the generator and the discriminator, and of their losses."""

    width: Count = 32
    """Feature maps of the generator."""
    blocks: Count = 3
    """Residual blocks of the generator."""
    discriminator_width: Count = 24
    """Feature maps of the discriminator's first layer; the next layers have two and four times as many."""
    words: Count = 64
    """Width of the features of a description."""
    text_network: TextNetwork = Field(default_factory=lambda: TextNetwork(embedding=32, hidden=64, dropout=0.0))
    """Widths of the network that reads sentences."""
    reconstructed: Share = 0.5
    """Share of the training pictures that are reconstructions; the others are drawn from the posterior."""
    keep_words: Share = 0.9
    """Share of the descriptions that the networks see; without the others a sharpener learns to work without words."""
    low_pass_weight: Weight = 10.0
    """Weight of the mean absolute difference of the low-passed pictures before and after, which keeps objects in
    place."""
    low_pass_side: Count = 8
    """Side of the low-passed pictures in pixels."""
    r1_weight: Weight = 0.05
    """Weight gamma of the penalty gamma / 2 |grad D|^2 at real pictures (Mescheder et al., 2018)."""
    r1_every: Count = 16
    """Steps between penalties, each of which counts as many times."""


def _default_training() -> TrainingSettings:
    values: dict[str, Any] = {
        "steps": 3_000,
        "batch": 16,
        "learning_rate": 2e-4,
        "adam_betas": (0.0, 0.9),
        "average": 0.999,
        "keep": "last",
        "validate_every": 500,
        "validation_examples": 512,
    }
    return TrainingSettings(**values)


class SharpeningSettings(Settings):
    """Settings that determine the sharpener of a given model."""

    sharpener: SharpenerSettings = Field(default_factory=SharpenerSettings)
    training: TrainingSettings = Field(default_factory=_default_training)
    data: DataSettings = Field(default_factory=DataSettings)
    """Data of the model; filled in."""
    posterior: str = ""
    """Name of the posterior that pictures are drawn from; filled in."""


class _WordReader(nn.Module):
    """Network from descriptions of B pictures to features [B, F]; unknown words add nothing.

    Args:
        described: Modalities of words by name.
        settings: Widths.
    """

    def __init__(self, described: Mapping[str, Description], settings: SharpenerSettings) -> None:
        super().__init__()
        self.features = settings.words
        readers: dict[str, nn.Module] = {}
        heads: dict[str, nn.Module] = {}
        for name, each in described.items():
            if isinstance(each, AttributesDescription):
                sizes = tuple(len(values) for values in each.values)
                readers[name] = AttributeVectorEncoder(sizes, AttributeNetwork(hidden=settings.words))
                heads[name] = nn.Linear(settings.words, settings.words)
            elif isinstance(each, TextDescription):
                readers[name] = reader = text_encoder(len(each.vocabulary), settings.text_network)
                heads[name] = nn.Linear(reader.features, settings.words)
            else:
                raise SettingsError(
                    f"a sharpener got the words '{name}' of kind {each.kind}, expected attributes or text; use another "
                    "dataset"
                )
        self.readers, self.heads = nn.ModuleDict(readers), nn.ModuleDict(heads)

    def forward(self, words: Batch | None, count: int) -> Tensor:
        """Return features [count, F] of descriptions; zero where nothing is known."""
        some = next(self.parameters(), torch.zeros(()))
        total = some.new_zeros(count, self.features)
        for name, head in self.heads.items():
            if words is None or name not in words.values:
                continue
            value, present = words.values[name], words.present[name]
            by_attribute = present.dim() > 1
            features = self.readers[name](value, present) if by_attribute else self.readers[name](value)
            known = present.any(1) if by_attribute else present
            total = total + head(features).to(total.dtype) * known[:, None]
        return total


class _Block(nn.Module):
    """Two convolutions whose features words scale and shift, added to the input [B, width, h, w]."""

    def __init__(self, width: int, words: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.modulation = nn.Linear(words, 2 * width)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, maps: Tensor, words: Tensor) -> Tensor:
        scale, shift = self.modulation(words)[..., None, None].chunk(2, 1)
        hidden = F.silu(self.first(F.silu(maps))) * (1 + scale) + shift
        return maps + 0.2 * self.second(F.silu(hidden))


class Sharpener(nn.Module):
    """Residual generator: it adds detail to pictures of a model, conditioned on their words.

    Untrained, it leaves pictures as they are. A channel of noise is random in training and zero in use (Mansimov et
    al.: "works best").

    Args:
        image: Name of the pictures' modality.
        shape: (C, H, W) of the pictures.
        described: Modalities of words by name; {} for pictures without words.
        settings: Widths.
    """

    def __init__(
        self, image: str, shape: tuple[int, int, int], described: Mapping[str, Description], settings: SharpenerSettings
    ) -> None:
        super().__init__()
        self.image = image
        # Half the resolution, with four times the channels: a quarter of the arithmetic.
        self.factor = 2 if all(side % 2 == 0 and side >= 32 for side in shape[1:]) else 1
        channels = (shape[0] + 1) * self.factor**2
        self.reader = _WordReader(described, settings)
        self.first = nn.Conv2d(channels, settings.width, 5, padding=2)
        self.blocks = nn.ModuleList(_Block(settings.width, settings.words) for _ in range(settings.blocks))
        self.last = nn.Conv2d(settings.width, shape[0] * self.factor**2, 5, padding=2)
        for parameter in self.last.parameters():
            nn.init.zeros_(parameter)

    def forward(self, pictures: Tensor, words: Batch | None = None, noise: Tensor | None = None) -> Tensor:
        """Return sharpened pictures [B, C, H, W] in [0, 1].

        Args:
            pictures: Pictures of a model [B, C, H, W] in [0, 1].
            words: Their descriptions, of which any part may be unknown.
            noise: Values of the channel of noise [B, 1, H, W]; zero by default.
        """
        noise = torch.zeros_like(pictures[:, :1]) if noise is None else noise
        condition = self.reader(words, len(pictures))
        maps = self.first(F.pixel_unshuffle(torch.cat([pictures - 0.5, noise], 1), self.factor))
        for block in self.blocks:
            maps = block(maps, condition)
        residual: Tensor = F.pixel_shuffle(self.last(F.silu(maps)), self.factor).to(pictures.dtype)
        full = pictures + residual
        # Clipped, with the gradient of the sum: a pixel beyond the range must be able to come back.
        return full + (full.detach().clamp(0, 1) - full.detach())


class Discriminator(nn.Module):
    """Discriminator of real and sharpened pictures: a convolutional network that looks at patches, with a projection
    of the words.

    Args:
        shape: (C, H, W) of the pictures.
        described: Modalities of words by name.
        settings: Widths.
    """

    def __init__(
        self, shape: tuple[int, int, int], described: Mapping[str, Description], settings: SharpenerSettings
    ) -> None:
        super().__init__()
        halvings = max(1, math.floor(math.log2(min(shape[1:]) / 4)))
        widths = [settings.discriminator_width * min(2**level, 4) for level in range(halvings)]
        layers: list[nn.Module] = [nn.Conv2d(shape[0], widths[0], 3, padding=1), nn.LeakyReLU(0.2)]
        for before, after in zip(widths, [*widths[1:], widths[-1]], strict=True):
            layers += [nn.Conv2d(before, after, 4, stride=2, padding=1), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers)
        for layer in self.layers:  # torch's own first weights shrink features by layers, and nothing is learned
            if isinstance(layer, nn.Conv2d) and layer.bias is not None:
                nn.init.kaiming_normal_(layer.weight, 0.2)
                nn.init.zeros_(layer.bias)
        self.reader = _WordReader(described, settings)
        self.output = nn.Linear(widths[-1], 1)
        self.projection = nn.Linear(settings.words, widths[-1], bias=False)

    def forward(self, pictures: Tensor, words: Batch | None = None) -> Tensor:
        """Return a number [B, P] for each patch of pictures [B, C, H, W]: the higher, the more real it looks."""
        features = self.layers(pictures - 0.5).flatten(2).transpose(1, 2)  # [B, P, F]
        match = (features * self.projection(self.reader(words, len(pictures)))[:, None]).sum(2)
        value: Tensor = self.output(features)[..., 0] + match
        return value.float()


def _words(data: DataSettings) -> dict[str, Description]:
    return {name: each for name, each in data.modalities.items() if each.describes}


def build_sharpener(settings: SharpeningSettings) -> Sharpener:
    """Build an untrained sharpener of the data's main picture.

    Raises:
        SettingsError: The data have no picture of grey levels or colours.
    """
    image = settings.data.image
    if image is None or image.layout != "bytes":
        kind = "no pictures" if image is None else f"black and white pixels ({image.name})"
        raise SettingsError(
            f"a sharpener got data with {kind}, expected pictures of grey levels or colours; use another dataset"
        )
    return Sharpener(image.name, image.shape, _words(settings.data), settings.sharpener)


def build_discriminator(settings: SharpeningSettings) -> Discriminator:
    """Build the untrained discriminator that a sharpener is trained against."""
    assert settings.data.image is not None
    return Discriminator(settings.data.image.shape, _words(settings.data), settings.sharpener)


def load_sharpener(path: Path, device: torch.device | str = "cpu") -> TrainedSharpener:
    """Load a trained sharpener.

    Raises:
        ArtifactError: The file is no sharpener, or its tensors do not fit its settings.
    """

    def build(header: Header, tensors: Mapping[str, Tensor]) -> tuple[SharpeningSettings, Sharpener]:
        settings = validate(SharpeningSettings, header.settings)
        return settings, build_sharpener(settings)

    header, _, network = load_trained(path, "sharpener", build, device)
    return TrainedSharpener(network, path, header)
