"""The protocol of a density over z: draws and log densities."""

from typing import Protocol

import torch
from torch import Tensor

__all__ = ["Posterior"]


class Posterior(Protocol):
    """Protocol of q(z | ...) for B examples, such as :class:`mmgen.latent.gaussian.DiagonalGaussian`."""

    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Return reparameterised draws [*shape, B, D]."""

    def log_prob(self, z: Tensor) -> Tensor:
        """Return log density at z [..., B, D], in nats [..., B]."""
