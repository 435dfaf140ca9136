"""Self-normalised importance resampling: one of M candidates, with probability proportional to its weight."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

_FIRST, _MOST = 64, 4096
"""First and default largest number of candidates of a draw."""
_POOL, _POOL_BYTES = 60_000, 64 * 2**20
"""Number of shared draws, and their largest size in bytes."""
_AT_ONCE = 32_768

Draw = Callable[[int], Tensor]
"""n -> z [n, D]."""
LogWeight = Callable[[Tensor], Tensor]
"""z [K, D] -> log weights [K]."""


@dataclass(frozen=True)
class Resampled:
    """Latents that were drawn from weighted candidates, with the number and effective sample size of the candidates.

    Attributes:
        z: The latents [n, D].
        effective: Effective sample size of the candidates: the mean over draws, or that of the shared draws.
        candidates: Number of candidates of each draw, or of the shared draws.
    """

    z: Tensor
    effective: float
    candidates: int


@dataclass
class CandidateStatistics:
    """Statistics of the candidates of guided draws, an entry for each description; the caller of a draw keeps them.

    Attributes:
        effective: Effective sample size of the candidates.
        candidates: Number of candidates.
        draws: Number of draws.
    """

    effective: list[float] = field(default_factory=list)
    candidates: list[int] = field(default_factory=list)
    draws: list[int] = field(default_factory=list)

    def add(self, resampled: Resampled) -> None:
        """Add the draws of one description."""
        self.effective.append(resampled.effective)
        self.candidates.append(resampled.candidates)
        self.draws.append(len(resampled.z))


def resample(
    draw: Draw,
    log_weights_of: LogWeight,
    n: int,
    effective_size: float,
    block_size: int,
    generator: torch.Generator | None,
    max_candidates: int | None = None,
) -> Resampled:
    """Draw n latents in proportion to weights, each from candidates of its own.

    Args:
        draw: Draws candidates.
        log_weights_of: Returns log weights of candidates.
        n: Number of latents.
        effective_size: Effective sample size to reach: the number of candidates doubles from 64 until then.
        block_size: Candidates to weight together.
        generator: Randomness of the choice among candidates.
        max_candidates: Largest number of candidates of each latent.
    """
    # The candidate with the largest log weight plus Gumbel noise is drawn with probability proportional to its weight,
    # so candidates can come in blocks, and only the best one so far is stored.
    max_candidates = _MOST if max_candidates is None else max_candidates
    best: Tensor | None = None
    chosen: Tensor | None = None
    total: Tensor | None = None
    squares: Tensor | None = None
    count, block = 0, min(_FIRST, max_candidates)
    while True:
        for start in range(0, n, max(1, block_size // block)):
            rows = slice(start, min(start + max(1, block_size // block), n))
            draws = rows.stop - rows.start
            z = draw(draws * block).reshape(draws, block, -1)
            weights = log_weights_of(z.flatten(0, 1)).double().reshape(draws, block)
            uniform = torch.rand(weights.shape, generator=generator, dtype=torch.float64, device=weights.device)
            scores, places = (weights - (-(uniform.clamp_min(1e-300)).log()).log()).max(1)
            if best is None or chosen is None or total is None or squares is None:
                best = scores.new_full((n,), -math.inf)
                total, squares, chosen = best.clone(), best.clone(), z.new_zeros(n, z.shape[-1])
            better = scores > best[rows]
            candidate = z[torch.arange(draws, device=z.device), places]
            chosen[rows] = torch.where(better[:, None], candidate, chosen[rows])
            best[rows] = torch.maximum(best[rows], scores)
            total[rows] = torch.logaddexp(total[rows], weights.logsumexp(1))
            squares[rows] = torch.logaddexp(squares[rows], (2 * weights).logsumexp(1))
        count += block
        assert chosen is not None and total is not None and squares is not None
        effective = float((2 * total - squares).exp().mean())
        if effective >= effective_size or count >= max_candidates:
            return Resampled(chosen, effective, count)
        block = min(count, max_candidates - count)  # twice as many


@dataclass(frozen=True)
class SharedDraws:
    """Pool of draws from an unconditional density, from which latents are resampled for every description.

    Attributes:
        z: The draws [P, D].
        logits: Decoded attributes [P, S] by name of the modality, filled on first use.
    """

    z: Tensor
    logits: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def draw(cls, draw: Draw, latent_size: int, least_count: int = _MOST) -> "SharedDraws":
        """Draw the pool: 60,000 latents, or fewer of many dimensions, but at least ``least_count``."""
        count = max(least_count, min(_POOL, _POOL_BYTES // (4 * latent_size)))
        parts = [draw(min(_AT_ONCE, count - start)) for start in range(0, count, _AT_ONCE)]
        return cls(torch.cat(parts))

    def resample(self, log_weights: Tensor, n: int, generator: torch.Generator | None) -> Resampled:
        """Draw n latents of the pool with replacement, in proportion to their weights [P]."""
        probability = log_weights.double().softmax(0)
        rows = torch.multinomial(probability, n, replacement=True, generator=generator)
        return Resampled(self.z[rows], float(1 / probability.square().sum()), len(probability))


def log_mean_weight(log_weights: Tensor) -> tuple[float, float]:
    """Return the log of the mean of K weights, from log weights [K], and its standard error sqrt(1/ESS - 1/K)."""
    log_weights = log_weights.double()
    count = len(log_weights)
    total = log_weights.logsumexp(0)
    inverse = float((2 * log_weights).logsumexp(0).sub(2 * total).exp())
    return float(total) - math.log(count), math.sqrt(max(inverse - 1 / count, 0.0))
