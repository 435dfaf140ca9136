"""Importance-weighted likelihoods, over points and samples at once.

Networks may run in bf16; densities come out in fp32 or better, and weights are added up in float64.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Eq. 8
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mmgen.batch import Batch
from mmgen.gaussian import DiagonalGaussian

__all__ = [
    "Density",
    "Estimate",
    "diagnostics",
    "estimate",
    "join",
    "log_terms",
    "mixture_samples",
    "passes",
    "summarise",
]

Density = Callable[[Tensor, Batch], Tensor]
"""(z [K, B, D], batch of B) -> log density [K, B], nats."""

_BYTES_PER_PASS = 64 * 2**20
_ACTIVATIONS = 16
"""A decoder's widest layer holds about this many times the numbers of its image."""


@dataclass(frozen=True)
class Estimate:
    """Per point, from K log weights: everything [N], float64, nats.

    Attributes:
        value: log of the mean weight; below the truth in expectation, by about half of ``relative_variance``.
        bound: Mean log weight: the one-sample bound (ELBO), averaged over the samples.
        ess: Effective sample size, 1 to K.
        log_variance: Variance of the log weights (WG Table 3).
        samples: K.
        source: Which estimate each point has, int64 [N]: points of the same one share its noise. None: each its own.
    """

    value: Tensor
    bound: Tensor
    ess: Tensor
    log_variance: Tensor
    samples: int
    source: Tensor | None = None

    @property
    def relative_variance(self) -> Tensor:
        """Estimated variance of the mean weight over its square [N]: 1/ESS - 1/K, also the variance of ``value``."""
        return (1 / self.ess - 1 / self.samples).clamp_min(0)

    @property
    def monte_carlo_stderr(self) -> float:
        """Noise of the mean of ``value`` over points: sqrt(sum_g n_g^2 v_g) / N for n_g points of estimate g."""
        shared = torch.ones_like(self.value)
        if self.source is not None:
            _, back, counts = self.source.unique(return_inverse=True, return_counts=True)
            shared = counts[back].double()
        # Each of the n_g points of an estimate adds n_g v_g.
        return float((shared * self.relative_variance).sum().sqrt() / len(shared))

    def __getitem__(self, rows: Tensor) -> "Estimate":
        """The estimates of ``rows`` (positions), of which some may be the same."""
        return Estimate(
            self.value[rows],
            self.bound[rows],
            self.ess[rows],
            self.log_variance[rows],
            samples=self.samples,
            source=rows if self.source is None else self.source[rows],
        )


def estimate(log_weights: Tensor) -> Estimate:
    """Summary of log weights [K, N]."""
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


def join(parts: Sequence[Estimate]) -> Estimate:
    """Estimates of consecutive points as one."""
    return Estimate(
        value=torch.cat([part.value for part in parts]),
        bound=torch.cat([part.bound for part in parts]),
        ess=torch.cat([part.ess for part in parts]),
        log_variance=torch.cat([part.log_variance for part in parts]),
        samples=parts[0].samples,
    )


def passes(numbers_per_decode: int) -> int:
    """How many latents to decode at once: as many as keep activations within the memory set aside."""
    return max(16, _BYTES_PER_PASS // (4 * _ACTIVATIONS * max(1, numbers_per_decode)))


def log_terms(
    proposal: DiagonalGaussian,
    batch: Batch,
    samples: int,
    densities: Mapping[str, Density],
    at_once: int,
    generator: torch.Generator,
) -> Generator[float, None, dict[str, Tensor]]:
    """Every log density at K draws of z for each point, from one pass through the decoders.

    Args:
        proposal: q(z | point) [N, D].
        batch: The N points.
        samples: K.
        densities: By name; "proposal" is added.
        at_once: Latents per pass.
        generator: Of the draws.

    Yields:
        Fraction done.

    Returns:
        By name, float64 [K, N].
    """
    count = batch.size
    device = proposal.mean.device
    names = [*densities, "proposal"]
    terms = {name: torch.empty(samples, count, dtype=torch.float64, device=device) for name in names}
    # All samples of few points at a time: the points' own tensors are then shared by as many samples as possible.
    width = max(1, at_once // samples)
    height = min(samples, at_once)
    for start in range(0, count, width):
        points = slice(start, min(start + width, count))
        part, q = batch[points], proposal[points]
        for low in range(0, samples, height):
            rows = slice(low, min(low + height, samples))
            z = q.sample(generator, (rows.stop - rows.start,))
            for name, density in densities.items():
                terms[name][rows, points] = density(z, part).double()
            terms["proposal"][rows, points] = q.log_prob(z).double()
        yield points.stop / count
    return terms


def mixture_samples(
    draws: Sequence[Callable[[Batch, int, torch.Generator], Tensor]],
    log_probs: Sequence[Density],
    batch: Batch,
    samples: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Draws from an even mixture of densities, as many from each, and the mixture's log density at them.

    With the prior as one of M components no weight p(y|z) p(z) / q(z) exceeds M p(y|z): the variance is finite whatever
    the other components miss (the balance heuristic of Veach and Guibas, 1995).

    Returns:
        z [K, B, D] and log q [K, B] in float64, K being ``samples`` rounded up to a multiple of M.
    """
    each = -(-samples // len(draws))
    z = torch.cat([draw(batch, each, generator) for draw in draws])
    parts = torch.stack([log_prob(z, batch).double() for log_prob in log_probs])
    return z, parts.logsumexp(0) - math.log(len(draws))


def summarise(values: Tensor) -> tuple[float, float | None]:
    """Mean over points [N] and its standard error."""
    count = len(values)
    return float(values.mean()), float(values.std() / math.sqrt(count)) if count > 1 else None


def diagnostics(result: Estimate) -> dict[str, Any]:
    """What says how far an estimate can be trusted: effective sample size, variance of log weights, its own noise."""
    noise = result.relative_variance
    variance, error = summarise(result.log_variance)
    return {
        "samples": result.samples,
        "effective_sample_size": float(result.ess.mean()),
        "smallest_effective_sample_size": float(result.ess.min()),
        "log_weight_variance": variance,
        "log_weight_variance_stderr": error,
        "monte_carlo_stderr": result.monte_carlo_stderr,
        # E log of a mean is below the log of the expectation by half its relative variance (second order).
        "estimated_bias": float(-0.5 * noise.mean()),
    }
