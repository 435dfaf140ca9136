"""Self-normalised importance resampling: one of M candidates, with probability proportional to its weight."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

__all__ = ["Resampled", "SharedDraws", "log_mean", "resample"]

_FIRST, _MOST = 64, 4096
"""Candidates of every draw: at first, and at most by default."""
_POOL, _POOL_BYTES = 60_000, 64 * 2**20
"""Draws in a pool, and bytes that it may take."""
_AT_ONCE = 32_768

Draw = Callable[[int], Tensor]
"""n -> z [n, D]."""
Weigh = Callable[[Tensor], Tensor]
"""z [K, D] -> log weights [K]."""


@dataclass(frozen=True)
class Resampled:
    """Draws, with the number and effective size of the candidates from which they were resampled.

    Attributes:
        z: [n, D].
        effective: Effective sample size of the candidates: the mean over draws, or that of the pool.
        candidates: How many there were for a draw, or in the pool.
    """

    z: Tensor
    effective: float
    candidates: int


def resample(
    draw: Draw,
    weigh: Weigh,
    n: int,
    enough: float,
    at_once: int,
    generator: torch.Generator | None,
    most: int | None = None,
) -> Resampled:
    """Draw n times, each from its own candidates: 64, doubled until their effective sample size is enough."""
    # The candidate with the largest log weight plus Gumbel noise is drawn with probability proportional to its weight,
    # so candidates can come in blocks and only the best one so far is kept.
    most = _MOST if most is None else most
    best: Tensor | None = None
    chosen: Tensor | None = None
    total: Tensor | None = None
    squares: Tensor | None = None
    have, block = 0, min(_FIRST, most)
    while True:
        for start in range(0, n, max(1, at_once // block)):
            rows = slice(start, min(start + max(1, at_once // block), n))
            many = rows.stop - rows.start
            z = draw(many * block).reshape(many, block, -1)
            weights = weigh(z.flatten(0, 1)).double().reshape(many, block)
            uniform = torch.rand(weights.shape, generator=generator, dtype=torch.float64, device=weights.device)
            scores, where = (weights - (-(uniform.clamp_min(1e-300)).log()).log()).max(1)
            if best is None or chosen is None or total is None or squares is None:
                best = scores.new_full((n,), -math.inf)
                total, squares, chosen = best.clone(), best.clone(), z.new_zeros(n, z.shape[-1])
            better = scores > best[rows]
            candidate = z[torch.arange(many, device=z.device), where]
            chosen[rows] = torch.where(better[:, None], candidate, chosen[rows])
            best[rows] = torch.maximum(best[rows], scores)
            total[rows] = torch.logaddexp(total[rows], weights.logsumexp(1))
            squares[rows] = torch.logaddexp(squares[rows], (2 * weights).logsumexp(1))
        have += block
        assert chosen is not None and total is not None and squares is not None
        effective = float((2 * total - squares).exp().mean())
        if effective >= enough or have >= most:
            return Resampled(chosen, effective, have)
        block = min(have, most - have)  # twice as many


@dataclass(frozen=True)
class SharedDraws:
    """Draws from an unconditional density, resampled for every description.

    Attributes:
        z: [P, D].
        logits: [P, S] by modality of attributes, once decoded.
    """

    z: Tensor
    logits: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def draw(cls, draw: Draw, latent_size: int, most: int = _MOST) -> "SharedDraws":
        """Draw 60,000 latents: fewer in many dimensions, more if ``most`` is more."""
        count = max(most, min(_POOL, _POOL_BYTES // (4 * latent_size)))
        parts = [draw(min(_AT_ONCE, count - start)) for start in range(0, count, _AT_ONCE)]
        return cls(torch.cat(parts))

    def resample(self, weights: Tensor, n: int, generator: torch.Generator | None) -> Resampled:
        """Resample n draws with replacement, with probabilities proportional to exp(weights) [P]."""
        probability = weights.double().softmax(0)
        rows = torch.multinomial(probability, n, replacement=True, generator=generator)
        return Resampled(self.z[rows], float(1 / probability.square().sum()), len(probability))


def log_mean(weights: Tensor) -> tuple[float, float]:
    """Return the log of the mean of K weights from their logarithms [K], and its standard error sqrt(1/ESS - 1/K)."""
    weights = weights.double()
    count = len(weights)
    total = weights.logsumexp(0)
    inverse = float((2 * weights).logsumexp(0).sub(2 * total).exp())
    return float(total) - math.log(count), math.sqrt(max(inverse - 1 / count, 0.0))
