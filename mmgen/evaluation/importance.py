"""Importance-weighted likelihoods, over points and samples at once.

Networks may run in bf16; densities come out in fp32 or better, and weights are added up in float64.

An estimate only knows of the modes that it was drawn from: where a proposal misses some, no number computed from its
own draws says so. So draws come from an even mixture of everything that there is to draw from, and every proposal is
also weighed alone, to see whether they agree.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Eq. 8
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5
    Optimally Combining Sampling Techniques for Monte Carlo Rendering (Veach, Guibas, 1995), the balance heuristic
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.posteriors import LayeredPosterior

Density = Callable[[Tensor, Batch], Tensor]
"""(z [K, B, D], batch of B) -> log density [K, B], nats."""

EstimatedDensity = Callable[[Tensor, Batch], tuple[Tensor, Tensor | None]]
"""(z [K, B, D], batch of B) -> log density [K, B] in nats, and its standard errors [K, B]; None where it is exact."""

Noise = tuple[Tensor, Tensor | None]
"""Variance of the estimate that each point has, nats^2 [N], and which one that is, int64 [N]; None: each its own."""

_BYTES_PER_PASS = 64 * 2**20
_ACTIVATIONS = 16
"""A decoder's widest layer holds about this many times the numbers of its image."""


@dataclass(frozen=True)
class Component:
    """One density of the mixture from which importance samples are drawn.

    Attributes:
        name: As tables say it: "q(z|image)".
        sample: (rows, points, n, generator) -> z [n, B, D] for the points of these rows.
        log_prob: (z [..., B, D], rows, points) -> [..., B], nats.
        informed: Whether it knows the point, so that it may be expected to do alone.
    """

    name: str
    sample: Callable[[slice, Batch, int, torch.Generator], Tensor]
    log_prob: Callable[[Tensor, slice, Batch], Tensor]
    informed: bool = True

    @classmethod
    def from_density(
        cls,
        name: str,
        sample: Callable[[Batch, int, torch.Generator], Tensor],
        log_prob: Density,
        informed: bool = True,
    ) -> "Component":
        """Make a component from functions that draw z given one example and compute its log density."""
        return cls(
            name,
            lambda rows, points, n, generator: sample(points, n, generator),
            lambda z, rows, points: log_prob(z, points),
            informed,
        )

    @classmethod
    def from_posterior(cls, name: str, q: DiagonalGaussian | LayeredPosterior) -> "Component":
        """Make a component from a Gaussian posterior of z [N, D] for all N examples."""
        return cls(
            name,
            lambda rows, points, n, generator: q[rows].sample(generator, (n,)),
            lambda z, rows, points: q[rows].log_prob(z),
        )


@dataclass(frozen=True)
class Terms:
    """Log densities, float64 in nats, of K draws of z for each of N examples.

    Attributes:
        densities: [K, N] by name.
        log_q: Log-density of every component at every draw [M, K, N].
        names: Names of the M components; the first is the one that one-sample bounds are through.
        informed: Which of them may be expected to do alone.
        sizes: How many draws are from each; they follow each other.
        errors: Standard errors [K, N] of densities that are estimates themselves, by name.
    """

    densities: Mapping[str, Tensor]
    log_q: Tensor
    names: tuple[str, ...]
    informed: tuple[bool, ...]
    sizes: tuple[int, ...]
    errors: Mapping[str, Tensor] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tensor:
        return self.densities[name]

    def __contains__(self, name: str) -> bool:
        return name in self.densities

    @property
    def proposal(self) -> Tensor:
        """Log density [K, N] of the mixture that the draws are from; weights are the components' shares of draws."""
        share = torch.tensor(self.sizes, dtype=self.log_q.dtype, device=self.log_q.device) / sum(self.sizes)
        return (self.log_q + share.log()[:, None, None]).logsumexp(0)

    def _relative_variance(self, log_weights: Tensor) -> Tensor | None:
        """Return the variance of the mean weight over its square [N]; None with single draws."""
        if min(self.sizes) < 2:
            return None
        relative = (log_weights - log_weights.logsumexp(0)).exp()  # adds up to one
        parts = relative.split(list(self.sizes))
        return torch.stack([size * part.var(0) for size, part in zip(self.sizes, parts, strict=True)]).sum(0)

    def weigh(self, log_target: Tensor, error: Tensor | None = None) -> "Estimate":
        """Estimate log of the integral of exp(log_target) over z from ``log_target`` [K, N] at the draws.

        ``error`` [K, N] is the standard error of ``log_target``, which draws of one example have in common.
        One-sample bound and variance of log weights are those of the first component alone: a mixture with p(z) in it
        has hopeless log weights, and bounds (CK) and variances (WG Table 3) are published through one posterior.
        """
        log_weights = log_target - self.proposal
        mixed = replace(
            summarise_weights(log_weights),
            names=self.names,
            variance=self._relative_variance(log_weights),
            density_error=None if error is None else (log_weights.softmax(0) * error).sum(0),
        )
        if len(self.names) == 1:
            return mixed
        alone, start = {}, 0
        for index, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            rows = slice(start, start + size)
            if self.informed[index]:
                alone[name] = summarise_weights(log_target[rows] - self.log_q[index, rows])
            start += size
        if not self.informed[0]:
            return replace(mixed, alone=alone)
        first = alone[self.names[0]]
        return replace(mixed, bound=first.bound, log_variance=first.log_variance, alone=alone)


@dataclass(frozen=True)
class Estimate:
    """Estimates in nats by importance sampling for N examples, from K draws each.

    Attributes:
        value: log of the mean weight; below the truth in expectation, by about half of ``relative_variance``.
        bound: Mean log weight: the one-sample bound (ELBO), averaged over the samples; of a mixture, over those of its
            first component, with its own weights.
        ess: Effective sample size, 1 to K.
        log_variance: Variance of the log weights (WG Table 3); of a mixture likewise.
        samples: K.
        source: Which estimate each point has, int64 [N]: points of the same one share its noise. None: each its own.
        alone: What components of a mixture say without the others, each from its own share of the draws, by name.
        names: What was drawn from.
        variance: Variance of the mean weight over its square, where more than the effective sample size tells it.
        density_error: Standard error [N] of a density that is itself an estimate, as a flow's by random probes.
    """

    value: Tensor
    bound: Tensor
    ess: Tensor
    log_variance: Tensor
    samples: int
    source: Tensor | None = None
    alone: Mapping[str, "Estimate"] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    variance: Tensor | None = None
    density_error: Tensor | None = None

    @property
    def relative_variance(self) -> Tensor:
        """Return the variance [N] of the mean weight over its square, which approximates the variance of ``value``.

        1/ESS - 1/K of draws from one density.
        """
        if self.variance is not None:
            return self.variance
        return (1 / self.ess - 1 / self.samples).clamp_min(0)

    @property
    def bias_bound(self) -> float:
        """Return a lower bound, in nats, for how much the mean of ``value`` underestimates the truth.

        E log of a mean is below the log of the expectation by half its relative variance, to second order and as far
        as the draws have seen.
        """
        return float(0.5 * self.relative_variance.mean())

    @property
    def monte_carlo_stderr(self) -> float:
        """Return the standard error of the mean of ``value`` that comes from the random draws."""
        return math.sqrt(variance_of_mean(*self.noise))

    @property
    def noise(self) -> Noise:
        """Return the variance [N] of ``value``, and the number of the estimate that each example uses."""
        return self.relative_variance, self.source

    @property
    def noise_of_bound(self) -> Noise:
        """Return the variance [N] of ``bound``, and the number of the estimate that each example uses."""
        first = next(iter(self.alone.values()), self)
        return self.log_variance / first.samples, self.source

    def __getitem__(self, rows: Tensor) -> "Estimate":
        """Return the estimates of the examples at the positions ``rows``, repetitions allowed."""
        return Estimate(
            self.value[rows],
            self.bound[rows],
            self.ess[rows],
            self.log_variance[rows],
            samples=self.samples,
            source=rows if self.source is None else self.source[rows],
            alone={name: one[rows] for name, one in self.alone.items()},
            names=self.names,
            variance=None if self.variance is None else self.variance[rows],
            density_error=None if self.density_error is None else self.density_error[rows],
        )


def variance_of_mean(variances: Tensor, source: Tensor | None) -> float:
    """Return the variance, nats^2, of the mean of N estimates; those with the same ``source`` are one estimate."""
    count = len(variances)
    shared = torch.ones_like(variances)
    if source is not None:
        _, back, counts = source.unique(return_inverse=True, return_counts=True)
        shared = counts[back].double()
    # Each of the n_g points of an estimate adds n_g v_g.
    return float((shared * variances).sum() / count**2)


def summarise_weights(log_weights: Tensor) -> Estimate:
    """Compute the estimate from log weights [K, N] of K draws for N examples."""
    weights = log_weights.double()
    count = weights.shape[0]
    total = weights.logsumexp(0)
    return Estimate(
        value=total - math.log(count),
        bound=weights.mean(0),
        ess=(2 * total - (2 * weights).logsumexp(0)).exp(),
        log_variance=weights.var(0) if count > 1 else torch.zeros_like(total),
        samples=count,
    )


def latents_per_pass(numbers_per_decode: int) -> int:
    """Return how many latents can be decoded at once within the memory limit."""
    return max(16, _BYTES_PER_PASS // (4 * _ACTIVATIONS * max(1, numbers_per_decode)))


def divide_draws(samples: int, components: int) -> tuple[int, ...]:
    """Divide ``samples`` draws among components as evenly as possible: 10 among 3 is (4, 3, 3).

    Example:
        >>> divide_draws(10, 3)
        (4, 3, 3)
    """
    return tuple(samples // components + (index < samples % components) for index in range(components))


def compute_terms(
    components: Sequence[Component],
    batch: Batch,
    samples: int,
    densities: Mapping[str, Density | EstimatedDensity],
    at_once: int,
    generator: torch.Generator,
) -> Generator[float, None, Terms]:
    """Draw K latents for each example and compute all log densities at them; yield the fraction done.

    Args:
        components: What z is drawn from, as evenly as K allows; those that would get no draw are left out.
        batch: The N points.
        samples: K.
        densities: By name.
        at_once: Latents per pass.
        generator: Randomness of the draws.

    Yields:
        Fraction done.

    Returns:
        The densities and those of the components, float64.
    """
    count, device = batch.size, next(iter(batch.values.values())).device
    sizes = divide_draws(samples, len(components))
    drawn_from = [(part, size) for part, size in zip(components, sizes, strict=True) if size]
    terms = {name: torch.empty(samples, count, dtype=torch.float64, device=device) for name in densities}
    errors: dict[str, Tensor] = {}
    log_q = torch.empty(len(drawn_from), samples, count, dtype=torch.float64, device=device)
    # All samples of few points at a time: the points' own tensors are then shared by as many samples as possible.
    width = max(1, at_once // samples)
    height = min(samples, at_once)
    for start in range(0, count, width):
        points = slice(start, min(start + width, count))
        part = batch[points]
        draws = torch.cat([component.sample(points, part, size, generator) for component, size in drawn_from])
        for low in range(0, samples, height):
            rows = slice(low, min(low + height, samples))
            z = draws[rows]
            for name, density in densities.items():
                value = density(z, part)
                value, error = value if isinstance(value, tuple) else (value, None)
                terms[name][rows, points] = value.double()
                if error is not None:
                    errors.setdefault(name, torch.zeros_like(terms[name]))[rows, points] = error.double()
            for index, (component, _) in enumerate(drawn_from):
                log_q[index, rows, points] = component.log_prob(z, points, part).double()
        yield points.stop / count
    return Terms(
        terms,
        log_q,
        tuple(component.name for component, _ in drawn_from),
        tuple(component.informed for component, _ in drawn_from),
        tuple(size for _, size in drawn_from),
        errors,
    )
