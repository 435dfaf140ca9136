"""What every family of aggregate posteriors offers."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from mmgen.batch import Batch
from mmgen.errors import UsageError
from mmgen.modalities.attributes import Attributes

__all__ = ["Aggregate", "Density", "Family"]


class Density(nn.Module, ABC):
    """A conditional density over standardised latents u, in fp32 or fp64 always."""

    @abstractmethod
    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        """log q(u | context): u [..., B, D], context [B, X] or None -> [..., B], nats."""

    @abstractmethod
    def sample(self, context: Tensor | None, n: int, batch: int, generator: torch.Generator | None) -> Tensor:
        """n draws for each of ``batch`` contexts: [n, B, D]."""

    @abstractmethod
    def reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        """Draws u [M, B, D] through which gradients flow, and weights [M, B] that sum to 1 over M.

        The expectation of f under q is estimated by sum_m weight_m f(u_m). M is 1 but for mixtures, whose discrete
        choice has no gradient: they give one draw per component, weighted by its probability.
        """


class Family(ABC):
    """A family of densities with its settings; members are frozen pydantic dataclasses."""

    @abstractmethod
    def density(self, latent_size: int, context_size: int) -> Density:
        """A density over [.., latent_size] given contexts of ``context_size`` (0: none)."""


class Aggregate(nn.Module):
    """q(z | description) or q(z), fitted after training.

    Args:
        latent_size: D.
        attributes: What it is conditioned on; None for the marginal q(z).
        family: Its kind of density.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, latent_size: int, attributes: Attributes | None, family: Family) -> None:
        super().__init__()
        self.latent_size = latent_size
        self.attributes = attributes
        self.density = family.density(latent_size, attributes.description_size if attributes else 0)
        # z = shift + scale * u: densities see latents of zero mean and unit variance, whatever the model made of them.
        self.register_buffer("shift", torch.zeros(latent_size))
        self.register_buffer("scale", torch.ones(latent_size))

    def standardise(self, mean: Tensor, log_sd: Tensor) -> None:
        """Set shift and scale to the moments of the aggregate of encodings [N, D]: of means plus mean variance."""
        self.shift.copy_(mean.mean(0))
        self.scale.copy_((mean.var(0) + (2 * log_sd).exp().mean(0)).sqrt().clamp_min(1e-6))

    def _context(self, condition: Batch | None) -> Tensor | None:
        if self.attributes is None:
            return None
        name = self.attributes.name
        if condition is None or name not in condition.values:
            raise UsageError(
                f"this aggregate is conditioned on {name}; give a description (it may leave attributes out)"
            )
        return self.attributes.describe(condition.values[name], condition.present[name]).to(self.shift.dtype)

    def log_prob(self, z: Tensor, condition: Batch | None) -> Tensor:
        """log q(z | condition): z [..., B, D] -> [..., B], nats."""
        with torch.autocast(z.device.type, enabled=False):
            u = (z - self.shift) / self.scale
            return self.density.log_prob(u, self._context(condition)) - self.scale.log().sum()

    def sample(self, condition: Batch | None, n: int, generator: torch.Generator | None = None) -> Tensor:
        """n draws per description: [n, B, D]; without a condition B is 1."""
        with torch.autocast(self.shift.device.type, enabled=False):
            batch = condition.size if condition is not None else 1
            return self.shift + self.scale * self.density.sample(self._context(condition), n, batch, generator)

    def reparameterised(self, condition: Batch | None, batch: int) -> tuple[Tensor, Tensor]:
        """Differentiable draws z [M, B, D] and their weights [M, B]; see :meth:`Density.reparameterised`."""
        with torch.autocast(self.shift.device.type, enabled=False):
            u, weights = self.density.reparameterised(self._context(condition), batch)
            return self.shift + self.scale * u, weights
