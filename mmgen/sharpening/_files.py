"""Building and loading of sharpeners."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from mmgen.artifacts import Header
from mmgen.core.errors import SettingsError
from mmgen.modalities import Description
from mmgen.models import DataSettings
from mmgen.settings.config import validate
from mmgen.sharpening._networks import Discriminator, Sharpener
from mmgen.sharpening._settings import SharpeningSettings
from mmgen.training.stage import load_trained

__all__ = ["TrainedSharpener", "build_discriminator", "build_sharpener", "load_sharpener"]


class TrainedSharpener(NamedTuple):
    """A trained sharpener with its file and header."""

    network: Sharpener
    path: Path
    header: Header


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
