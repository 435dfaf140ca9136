"""The interface of every family of conditional densities over z."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from mmgen.latent.space import LatentSpace

Terms = Sequence[tuple[float | Tensor, Tensor | None]]
"""Weights, numbers or tensors [1], and contexts [B, X] of a combination of conditions; the weights sum to one."""


@dataclass(frozen=True)
class Steering:
    """Guidance along the path of a draw, from noise at t = 0 to the draw at t = 1.

    Attributes:
        terms: Weights and contexts of a combination of several; outside the interval the first context acts alone.
        reader: (u [..., B, D], rows of descriptions) -> log weight [..., B], whose gradient pulls the path; None for
            none.
        start, end: Part of the path, within 0 and 1, on which combination and reader act.
        rows: Descriptions that the points belong to.
    """

    terms: Terms
    reader: Callable[[Tensor, slice], Tensor] | None = None
    start: float = 0.0
    end: float = 1.0
    rows: slice = field(default_factory=lambda: slice(None))

    def of_descriptions(self, rows: slice) -> "Steering":
        """Return the steering of some descriptions; a single context is for all of them."""
        terms = [
            (weight, context if context is None or len(context) == 1 else context[rows])
            for weight, context in self.terms
        ]
        return replace(self, terms=terms, rows=rows)


class Density(nn.Module, ABC):
    """Base of conditional densities q(u | context) over standardised latents u.

    Attributes:
        noise_size: N, numbers of standard Gaussian noise that :meth:`carry_noise` turns into a draw; None for a family
            with draws of another kind, which has a :meth:`sample` of its own.
    """

    noise_size: int | None = None

    @abstractmethod
    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        """Compute log q(u | context) [..., B] in nats, of u [..., B, D] and context [B, X] or None."""

    def log_prob_with_error(self, u: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Compute log q(u | context) [..., B] in nats, and its standard errors [..., B]; None where it is exact."""
        return self.log_prob(u, context), None

    @property
    def log_prob_cost(self) -> float:
        """Floating-point operations of one log density, roughly: two for each weight."""
        return 2.0 * sum(weights.numel() for weights in self.parameters())

    def carry_noise(self, noise: Tensor, context: Tensor | None) -> Tensor:
        """Carry standard Gaussian noise [..., B, N] to draws u [..., B, D] from q(u | context), by which it is drawn
        without PyTorch too (``mmgen export --onnx``).
        """
        raise NotImplementedError(f"{type(self).__name__} has draws of its own")  # not abstract: see noise_size

    def sample(self, context: Tensor | None, n: int, batch: int, generator: torch.Generator | None) -> Tensor:
        """Draw u [n, B, D] from q(u | context): ``n`` draws for each of ``batch`` contexts."""
        assert self.noise_size is not None, "a density without noise_size has a sample of its own"
        like = next(self.parameters())
        noise = torch.randn(n, batch, self.noise_size, generator=generator, device=like.device, dtype=like.dtype)
        return self.carry_noise(noise, context)

    @abstractmethod
    def sample_reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        """Draw u [M, B, D] that carry gradients, with weights [M, B] that sum to 1 over M.

        The expectation of f under q is estimated by sum_m weight_m f(u_m). M is 1 except for mixtures, whose discrete
        choice has no gradient: they give one draw per component, weighted by its probability.
        """

    def training_value(self, u: Tensor, context: Tensor | None) -> Tensor:
        """Compute log q(u | context) [..., B] of draws u [..., B, D], or another objective that a fit maximises."""
        return self.log_prob(u, context)

    def sample_with_log_prob(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """Draw u [M, B, D] that carry gradients; return them with weights [M, B] and log q(u) [M, B] in nats."""
        u, weights = self.sample_reparameterised(context, batch)
        return u, weights, self.log_prob(u, context)


class SteeredDensity(Density):
    """A density whose draws can be guided on their way; in a combination of contexts zeros stand for no context."""

    @property
    @abstractmethod
    def knows_no_context(self) -> bool:
        """Whether it was trained with dropped contexts, as classifier-free guidance needs."""

    def carry_noise(self, noise: Tensor, context: Tensor | None) -> Tensor:
        return self.steer_noise(noise, Steering(((1.0, context),)))

    @abstractmethod
    def steer_noise(self, noise: Tensor, steering: Steering) -> Tensor:
        """Carry noise [..., B, N] to draws u [..., B, D] as :meth:`carry_noise` does, under guidance."""

    @abstractmethod
    def steered_sample(self, steering: Steering, n: int, batch: int, generator: torch.Generator | None) -> Tensor:
        """Draw u [n, B, D] under guidance: ``n`` draws for each of ``batch`` descriptions."""

    @abstractmethod
    def steered_log_prob(self, u: Tensor, steering: Steering) -> tuple[Tensor, Tensor | None]:
        """Compute the log density [..., B] of :meth:`steered_sample` in nats, and its standard errors as
        :meth:`log_prob_with_error` does.
        """


class Family(ABC):
    """Base of the settings of a family of densities. Members are frozen pydantic dataclasses."""

    by_likelihood: ClassVar[bool] = True
    """Whether a fit maximises log q, and draws with gradients and their log density are as fast as draws."""
    few_candidates: ClassVar[int | None] = None
    """Candidates of a guided draw by default, for families whose draws are slow; None for fast ones."""

    @classmethod
    def example(cls) -> Self:
        """Return settings for the fast tests of :func:`mmgen.testing.check`; by default the default settings."""
        return cls()

    def training_defaults(self, latent: LatentSpace | None) -> Mapping[str, Any]:
        """Return settings of training that a fit has by default, by name.

        Args:
            latent: Space of z; None where the settings of the model do not determine it.
        """
        return {}

    @abstractmethod
    def build_density(self, latent: LatentSpace, context_size: int) -> Density:
        """Build an untrained density over points of ``latent``, given contexts of ``context_size`` (0: none).

        Points u [..., D] are flat; the shapes of ``latent`` say which of their entries are neighbours.
        """
