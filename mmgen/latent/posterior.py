"""A density over z: what can be drawn from, and whose log density is known."""

from typing import Protocol

import torch
from torch import Tensor

__all__ = ["Posterior"]


class Posterior(Protocol):
    """q(z | ...) of B examples; :class:`mmgen.latent.gaussian.DiagonalGaussian` is one."""

    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Return reparameterised draws [*shape, B, D]."""

    def log_prob(self, z: Tensor) -> Tensor:
        """Return log density at z [..., B, D], in nats [..., B]."""
