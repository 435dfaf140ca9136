"""Protocol of densities over z, which give draws and log densities."""

from typing import Protocol

import torch
from torch import Tensor

__all__ = ["Posterior"]


class Posterior(Protocol):
    """Protocol of a posterior q(z | ...) of B examples, such as :class:`mmgen.latent.gaussian.DiagonalGaussian`."""

    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw z [*shape, B, D], reparameterised: gradients pass through the draws."""

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density log q(z | ...) at z [..., B, D], in nats [..., B]."""
