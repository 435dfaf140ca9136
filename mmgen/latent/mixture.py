"""A mixture of diagonal Gaussians, as posteriors of mixtures of experts are."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from mmgen.latent.gaussian import DiagonalGaussian


@dataclass(frozen=True)
class GaussianMixture:
    """Mixture of K diagonal Gaussians for each of B examples.

    Attributes:
        parts: The Gaussians [K, B, D].
        log_weights: Logarithms of their weights [K, B], which sum to 1 for each example; -inf leaves a part out.
    """

    parts: DiagonalGaussian
    log_weights: Tensor

    @classmethod
    def even(cls, parts: DiagonalGaussian, held: Tensor) -> "GaussianMixture":
        """Mix those Gaussians [K, B, D] that ``held`` [K, B] names in equal parts; all of them where it names none."""
        counted = held | ~held.any(0)
        return cls(parts, torch.where(counted, 0.0, -torch.inf).to(parts.mean.dtype).log_softmax(0))

    @property
    def mean(self) -> Tensor:
        """Mean of the mixture [B, D]."""
        return (self.log_weights.exp().unsqueeze(-1) * self.parts.mean).sum(0)

    def choose(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> DiagonalGaussian:
        """Draw one part for each of the draws [*shape, B], and return the Gaussians [*shape, B, D] drawn."""
        batch = self.log_weights.shape[1]
        drawn = torch.multinomial(
            self.log_weights.exp().T, math.prod(shape), replacement=True, generator=generator
        )  # [B, N]
        rows = torch.arange(batch, device=drawn.device)
        chosen = [each[drawn.T, rows].reshape(*shape, batch, -1) for each in (self.parts.mean, self.parts.log_sd)]
        return DiagonalGaussian(*chosen)

    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw z [*shape, B, D]; gradients reach the parts drawn, and not the weights."""
        return self.choose(generator, shape).sample(generator)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density at z [..., B, D], in nats [..., B]."""
        each = self.parts.log_prob(z.unsqueeze(-3))  # [..., K, B]
        return (each + self.log_weights).logsumexp(-2)

    def __getitem__(self, rows: slice | Tensor) -> "GaussianMixture":
        return GaussianMixture(
            DiagonalGaussian(self.parts.mean[:, rows], self.parts.log_sd[:, rows]), self.log_weights[:, rows]
        )
