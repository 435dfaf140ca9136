"""The interface of every family of conditional densities over z."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

__all__ = ["Density", "Family"]


class Density(nn.Module, ABC):
    """A conditional density q(u | context) over standardised latents u, computed in fp32 or fp64."""

    @abstractmethod
    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        """Return log q(u | context) [..., B] in nats for u [..., B, D] and context [B, X] or None."""

    @abstractmethod
    def sample(self, context: Tensor | None, n: int, batch: int, generator: torch.Generator | None) -> Tensor:
        """Draw u [n, B, D]: n draws for each of ``batch`` contexts."""

    @abstractmethod
    def sample_reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        """Return draws u [M, B, D] that carry gradients, and weights [M, B] that sum to 1 over M.

        The expectation of f under q is estimated by sum_m weight_m f(u_m). M is 1 except for mixtures, whose discrete
        choice has no gradient: they give one draw per component, weighted by its probability.
        """

    def sample_with_log_prob(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return draws u [M, B, D] that carry gradients, weights [M, B], and log q of the draws [M, B] in nats."""
        u, weights = self.sample_reparameterised(context, batch)
        return u, weights, self.log_prob(u, context)


class Family(ABC):
    """Settings of a family of densities; members are frozen pydantic dataclasses."""

    @abstractmethod
    def build_density(self, latent_size: int, context_size: int) -> Density:
        """Build a density over [.., latent_size] given contexts of ``context_size`` (0: none)."""
