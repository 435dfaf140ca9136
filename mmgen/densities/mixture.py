"""Mixture of diagonal Gaussians whose weights, means and variances depend on the description."""

from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.densities._base import Density, Family
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.networks import dense_layers
from mmgen.objectives import CONFIG

__all__ = ["Mixture"]


class GaussianMixture(Density):
    """A mixture of diagonal Gaussians; a network computes weights, means and scales from the context."""

    def __init__(self, latent_size: int, context_size: int, components: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.latent_size, self.noise_size = latent_size, latent_size + 1
        self.components = components
        # Without a context the network sees a constant, so that its biases are the parameters.
        self.context_size = context_size
        self.network = dense_layers([max(1, context_size), *hidden, components * (1 + 2 * latent_size)], nn.SiLU)
        # Start with components spread out: equal ones would get equal gradients for ever.
        self.spread = nn.Parameter(torch.randn(components, latent_size))

    def _mixture_parameters(self, context: Tensor | None, batch: int) -> tuple[Tensor, DiagonalGaussian]:
        """Compute the log weights [B, M] and the components [B, M, D] of the mixture."""
        seen = context if context is not None else self.spread.new_ones(batch, 1)
        raw = self.network(seen).unflatten(-1, (self.components, 1 + 2 * self.latent_size))
        logits, mean, log_sd = raw.split([1, self.latent_size, self.latent_size], -1)
        return logits.squeeze(-1).log_softmax(-1), DiagonalGaussian(mean + self.spread, log_sd.clamp(-7, 4))

    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        log_weights, parts = self._mixture_parameters(context, 1 if context is None else len(context))
        return (log_weights + parts.log_prob(u.unsqueeze(-2))).logsumexp(-1)

    def carry_noise(self, noise: Tensor, context: Tensor | None) -> Tensor:
        log_weights, parts = self._mixture_parameters(context, noise.shape[-2])
        share = torch.special.ndtr(noise[..., :1])  # the first number chooses the component
        chosen = (log_weights.exp().cumsum(-1) < share).sum(-1).clamp(max=self.components - 1)  # [..., B]
        rows = torch.arange(noise.shape[-2], device=chosen.device).expand_as(chosen)
        return parts.mean[rows, chosen] + parts.sd[rows, chosen] * noise[..., 1:]

    def sample_reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        log_weights, parts = self._mixture_parameters(context, batch)
        return parts.sample().movedim(1, 0), log_weights.exp().T


@dataclass(frozen=True, config=CONFIG)
class Mixture(Family):
    """Mixtures of Gaussians, for aggregated posteriors with separate clusters."""

    components: Annotated[int, Field(ge=1)] = 20
    """Number of Gaussians."""
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (256, 256)
    """Hidden layers of the network that gives their parameters."""

    def build_density(self, latent: LatentSpace, context_size: int) -> Density:
        return GaussianMixture(latent.size, context_size, self.components, self.hidden)
