"""Densities over z: what they promise, and the diagonal Gaussian that encoders return."""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Posterior(Protocol):
    """Protocol of a posterior q(z | ...) of B examples, such as :class:`mmgen.latent.gaussian.DiagonalGaussian`."""

    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw z [*shape, B, D], reparameterised: gradients pass through the draws."""

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density log q(z | ...) at z [..., B, D], in nats [..., B]."""


_LOG_2_PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class DiagonalGaussian:
    """Gaussian N(mean, diag(exp(log_sd)^2)) over the last axis, in fp32 or fp64, since bf16 is too coarse.

    Attributes:
        mean: Mean [..., D].
        log_sd: Natural logarithm of the standard deviation, [..., D].
    """

    mean: Tensor
    log_sd: Tensor

    @classmethod
    def standard(cls, *shape: int, like: Tensor | None = None) -> "DiagonalGaussian":
        """Return the standard Gaussian N(0, I) of shape [..., D], on the device and in the dtype of ``like``."""
        zeros = torch.zeros(*shape) if like is None else torch.zeros(*shape, dtype=like.dtype, device=like.device)
        return cls(zeros, zeros)

    @property
    def sd(self) -> Tensor:
        """Standard deviation [..., D]."""
        return self.log_sd.exp()

    @property
    def variance(self) -> Tensor:
        """Variance [..., D]."""
        return (2 * self.log_sd).exp()

    @property
    def precision(self) -> Tensor:
        """Inverse variance [..., D]."""
        return (-2 * self.log_sd).exp()

    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Return reparameterised draws [*shape, ..., D]: gradients reach mean and log_sd."""
        noise = torch.randn(
            (*shape, *self.mean.shape), generator=generator, device=self.mean.device, dtype=self.mean.dtype
        )
        return self.mean + self.sd * noise

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density of the Gaussian at ``z`` [..., D], in nats [...]."""
        standardised = (z - self.mean) * (-self.log_sd).exp()
        return (-0.5 * (standardised.square() + _LOG_2_PI) - self.log_sd).sum(-1)

    def kl(self, other: "DiagonalGaussian") -> Tensor:
        """Return the divergence KL(self || other) in nats [...], in closed form."""
        difference = (self.mean - other.mean) * (-other.log_sd).exp()
        log_ratio = self.log_sd - other.log_sd
        return (0.5 * ((2 * log_ratio).exp() + difference.square() - 1) - log_ratio).sum(-1)

    def entropy(self) -> Tensor:
        """Return the differential entropy of the Gaussian in nats [...]."""
        return (self.log_sd + 0.5 * (1 + _LOG_2_PI)).sum(-1)

    def detach(self) -> "DiagonalGaussian":
        return DiagonalGaussian(self.mean.detach(), self.log_sd.detach())

    def __getitem__(self, rows: int | slice | Tensor | tuple[Tensor, ...]) -> "DiagonalGaussian":
        return DiagonalGaussian(self.mean[rows], self.log_sd[rows])
