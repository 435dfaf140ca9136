"""A VAE whose z is a grid, with a prior whose mean is learned."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.latent import DiagonalGaussian, LatentSpace, Trace
from mmgen.likelihoods import full_precision
from mmgen.modalities import Modality
from mmgen.models import (
    DataSettings,
    Demands,
    Inputs,
    Model,
    ModelSettings,
    available_modalities,
    make_decoders,
    networks_by_kind,
)

__all__ = ["GridVae"]

Count = Annotated[int, Field(ge=1)]


class GridSettings(ModelSettings):
    """Sizes of the grid and of the networks beside it."""

    name: Literal["grid-vae"] = "grid-vae"
    """The kind of model."""
    grid: tuple[Count, Count, Count] = (2, 4, 1)
    """(C, h, w) of z."""
    hidden: Count = 16
    """Width of the layers between features and z."""
    networks: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of the networks over each kind of data; left out, the kind's own."""


class Encoder(nn.Module):
    """q(z | inputs) from the features of all given modalities side by side.

    Args:
        modalities: The given modalities.
        networks: Settings of networks by kind.
        size: D.
        hidden: Width of the hidden layer.
    """

    def __init__(self, modalities: Sequence[Modality], networks: dict[str, Any], size: int, hidden: int) -> None:
        super().__init__()
        made = [each.encoder(networks[each.kind])[0] for each in modalities]
        self.modalities, self.encoders = list(modalities), nn.ModuleList(made)
        self.head = nn.Sequential(nn.LazyLinear(hidden), nn.SiLU(), nn.Linear(hidden, 2 * size))

    def forward(self, batch: Batch) -> DiagonalGaussian:
        """Return the posterior [B, D]."""
        features = [
            each.features(encoder, batch.values[each.name], batch.present[each.name])
            for each, encoder in zip(self.modalities, self.encoders, strict=True)
        ]
        mean, log_sd = full_precision(self.head(torch.cat(features, -1))).chunk(2, -1)
        return DiagonalGaussian(mean, log_sd.clamp(-7, 4))


class GridVae(Model):
    """p(z) = N(m, I) over a grid [C, h, w] with a learned mean m.

    Args:
        latent: The grid.
        modalities: What is decoded, by name.
        decoders: A network for each.
        encoders: A network for each posterior.
    """

    settings = GridSettings

    def __init__(
        self,
        latent: LatentSpace,
        modalities: dict[str, Modality],
        decoders: dict[str, nn.Module],
        encoders: dict[Inputs, Encoder],
    ) -> None:
        super().__init__()
        self.latent, self.modalities = latent, modalities
        self.decoders = nn.ModuleDict(decoders)
        self.inputs = list(encoders)
        self.encoders = nn.ModuleList(encoders.values())
        self.prior_mean = nn.Parameter(0.1 * torch.randn(latent.size))
        channels = latent.shapes["z"][0]
        self.mixing = nn.Conv2d(channels, channels, 3, padding=1)

    @classmethod
    def build(cls, settings: GridSettings, demands: Demands, data: DataSettings) -> "GridVae":
        """Build the networks that an objective needs."""
        latent = LatentSpace.grid(*settings.grid)
        available = available_modalities(data, {}, demands.modalities)
        networks = networks_by_kind(data, {}, settings.networks)
        generated = {name: available[name] for name in demands.generates}
        modalities, decoders = make_decoders(dict.fromkeys(generated, latent.size), generated, networks)
        encoders = {
            inputs: Encoder([available[name] for name in inputs], networks, latent.size, settings.hidden)
            for inputs in sorted(demands.posteriors)
        }
        return cls(latent, modalities, decoders, encoders)

    @property
    def prior(self) -> DiagonalGaussian:
        """p(z) [D]."""
        return DiagonalGaussian(self.prior_mean, torch.zeros_like(self.prior_mean))

    def has_posterior(self, inputs: Inputs) -> bool:
        """Tell whether there is a network for q(z | inputs)."""
        return inputs == () or inputs in self.inputs

    def posterior(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        """Return q(z | inputs) [B, D]."""
        if inputs == ():
            mean = self.prior_mean.expand(batch.size, -1)
            return DiagonalGaussian(mean, torch.zeros_like(mean))
        if inputs not in self.inputs:
            raise UsageError(f"this model has no inference network for q(z | {', '.join(inputs)})")
        posterior: DiagonalGaussian = self.encoders[self.inputs.index(inputs)](batch)
        return posterior

    def encode(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> DiagonalGaussian:
        """Return q(z | inputs) [B, D]."""
        return self.posterior(batch, inputs)

    def log_prior(self, z: Tensor) -> Tensor:
        """Return log p(z) in nats."""
        return self.prior.log_prob(z)

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """Return the parameters of p(x_name | z) for z [..., D]."""
        grid = z.reshape(-1, *self.latent.shapes["z"])
        parameters: Tensor = self.decoders[name](self.mixing(grid).flatten(1))
        return parameters.unflatten(0, z.shape[:-1])

    def trace(
        self, batch: Batch, inputs: Inputs, samples: int | None = None, names: Sequence[str] | None = None
    ) -> Trace:
        """Draw z, and return likelihoods and the divergence."""
        q, p = self.posterior(batch, inputs), self.posterior(batch, ())
        z = q.sample(None, () if samples is None else (samples,))
        likely = {name: self.log_likelihood(name, z, batch) for name in (self.generates if names is None else names)}
        return Trace(z, likely, {"z": q.kl(p)}, {"z": p.log_prob(z) - q.log_prob(z)})

    def inference_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the encoders."""
        return list(self.encoders.parameters())
