"""One linear layer from images to z, and one back."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.modalities.image import Image
from mmgen.models import DataSettings, Demands, GaussianModel, Inputs, ModelSettings, available_modalities

__all__ = ["LinearVae"]


class LinearSettings(ModelSettings):
    """Its size."""

    name: Literal["linear-vae"] = "linear-vae"
    """The kind of model."""
    latent_size: Annotated[int, Field(ge=1)] = 4
    """D, dimensions of z."""


class LinearVae(GaussianModel):
    """p(image | z) and q(z | image) are linear in what they see; it generates images alone.

    Args:
        latent_size: D.
        image: The images.
    """

    settings = LinearSettings

    def __init__(self, latent_size: int, image: Image) -> None:
        super().__init__()
        pixels = int(torch.tensor(image.shape).prod())
        self.latent = LatentSpace.flat(latent_size)
        self.modalities = {image.name: image}
        self.encoder = nn.Linear(pixels, 2 * latent_size)
        self.decoders = nn.ModuleDict({image.name: nn.Linear(latent_size, pixels)})
        self.image = image

    @classmethod
    def build(cls, settings: LinearSettings, demands: Demands, data: DataSettings) -> "LinearVae":
        """The model for one kind of image."""
        available = available_modalities(data, {"image": "bernoulli"}, demands.modalities)
        image = available[demands.modalities[0]]
        if demands.modalities != (image.name,) or not isinstance(image, Image):
            raise SettingsError(f"model linear-vae is of one image alone, got {', '.join(demands.modalities)}")
        return cls(settings.latent_size, image)

    def has_posterior(self, inputs: Inputs) -> bool:
        """Whether it has q(z | inputs): of nothing, and of the image."""
        return inputs in ((), (self.image.name,))

    def posterior(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        """q(z | inputs) [B, D]."""
        if not inputs:
            return DiagonalGaussian.standard(batch.size, self.latent_size, like=self.encoder.weight)
        if not self.has_posterior(inputs):
            raise UsageError(f"this model has no inference network for q(z | {', '.join(inputs)})")
        mean, log_sd = self.encoder(batch.values[self.image.name].flatten(1)).float().chunk(2, -1)
        return DiagonalGaussian(mean.to(self.encoder.weight.dtype), log_sd.to(self.encoder.weight.dtype))

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """Logits of pixels [..., C, H, W]."""
        return self.decoders[name](z).unflatten(-1, self.image.shape)

    def inference_parameters(self) -> list[nn.Parameter]:
        """Those of q(z | image)."""
        return list(self.encoder.parameters())
