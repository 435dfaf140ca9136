"""A Gaussian per description with a full covariance: what second moments alone can say of encodings."""

from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from mmgen.densities._base import Density, Family
from mmgen.densities.gaussian import ConditionalGaussian
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.networks import dense_layers
from mmgen.objectives import CONFIG

__all__ = ["FullGaussian"]


class _FullGaussian(Density):
    """Gaussian N(m, S L L' S): a network computes m, log S (diagonal) and L (unit lower triangular)."""

    def __init__(self, latent_size: int, context_size: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.noise_size = latent_size
        self.diagonal = ConditionalGaussian(latent_size, context_size, hidden)
        below = torch.tril_indices(latent_size, latent_size, -1)
        self.register_buffer("below", below, persistent=False)
        self.correlations = dense_layers([max(1, context_size), *hidden, below.shape[1]], torch.nn.SiLU)

    def _parts(self, context: Tensor | None, batch: int) -> tuple[DiagonalGaussian, Tensor]:
        """Return m and S as a Gaussian [B, D], and L [B, D, D]."""
        q = self.diagonal.distribution(context, batch)
        seen = context if context is not None else q.mean.new_ones(batch, 1)
        below = self.below
        assert isinstance(below, Tensor)
        factor = torch.eye(q.mean.shape[-1], dtype=q.mean.dtype, device=q.mean.device).repeat(len(q.mean), 1, 1)
        factor[:, below[0], below[1]] = self.correlations(seen).to(q.mean.dtype)
        return q, factor

    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        q, factor = self._parts(context, 1 if context is None else len(context))
        standardised = ((u - q.mean) / q.sd).unsqueeze(-1)
        noise = torch.linalg.solve_triangular(factor, standardised, upper=False, unitriangular=True).squeeze(-1)
        return DiagonalGaussian.standard(*noise.shape, like=noise).log_prob(noise) - q.log_sd.sum(-1)

    def carry_noise(self, noise: Tensor, context: Tensor | None) -> Tensor:
        q, factor = self._parts(context, noise.shape[-2])
        return q.mean + q.sd * (factor @ noise.unsqueeze(-1)).squeeze(-1)

    def sample_reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        q, _ = self._parts(context, batch)
        return self.carry_noise(torch.randn_like(q.mean)[None], context), q.mean.new_ones(1, batch)


@dataclass(frozen=True, config=CONFIG)
class FullGaussian(Family):
    """Gaussians with a full covariance; a network computes mean, scales and correlations."""

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (256, 256)
    """Hidden layers of the networks that give them."""

    def build_density(self, latent: LatentSpace, context_size: int) -> Density:
        return _FullGaussian(latent.size, context_size, self.hidden)
