"""Costs of log densities that are integrals themselves, as those of flows: fewer samples by default, and a limit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mmgen.core.errors import UsageError
from mmgen.evaluation.likelihoods import count_descriptions
from mmgen.evaluation.proposals import MIXTURE
from mmgen.posteriors import SLOW

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["explain_slow_densities", "check_slow_pairs", "importance_samples", "text_samples"]

_SAMPLES, _TEXT_SAMPLES = 10, 100
"""Default numbers of importance samples where log densities are slow."""
_SPEED = {"cpu": 5e10, "cuda": 5e12}
"""Floating-point operations a second, roughly: of one core, or of a GPU."""
_MOST_HOURS = 1.0


def importance_samples(evaluation: "Evaluation") -> int:
    """Return the number of importance samples of a point: --samples, or by default fewer where densities are slow."""
    return _samples(evaluation, "samples", _SAMPLES, evaluation.posteriors)


def text_samples(evaluation: "Evaluation") -> int:
    """Return the number of samples of log p(y), likewise: --text-samples, or by default fewer under a slow q(z)."""
    return _samples(evaluation, "text_samples", _TEXT_SAMPLES, _priors(evaluation))


def explain_slow_densities(evaluation: "Evaluation") -> str:
    """Return "" after checking that the log densities of all draws take no more than about an hour.

    Raises:
        UsageError: They take longer; the message has the numbers to give.
    """
    costs = {name: _cost(evaluation, name) for name in evaluation.posteriors}
    priors = _priors(evaluation)
    mixed = sum(costs[name] for name in priors) if evaluation.settings.proposal == MIXTURE else 0.0
    draw = sum(costs.values()) + mixed
    points, samples = min(evaluation.settings.number, len(evaluation.rows())), importance_samples(evaluation)
    # Densities of the prior count twice for log p(y): as the target, and as one of the proposals.
    words = 2 * sum(costs[name] for name in priors) * text_samples(evaluation)
    words *= count_descriptions(evaluation.loaded, evaluation.data_points) if words >= SLOW else 0
    speed = _speed(evaluation)
    hours = (points * samples * draw + words) / speed / 3600
    if hours <= _MOST_HOURS:
        return ""
    allowed = max(1, int((_MOST_HOURS * 3600 * speed - words) / draw))
    numbers = f"--samples {allowed // points}" if allowed >= points else f"--samples 1 --number {allowed}"
    if words / speed / 3600 > _MOST_HOURS / 2:
        numbers = f"--text-samples {max(2, text_samples(evaluation) // (2 * int(hours + 1)))}"
    raise UsageError(
        f"log-likelihood got {points:,} points with {samples:,} samples each, whose log densities by this flow take "
        f"about {hours:,.1f} hours, expected one at most; use {numbers}"
    )


def check_slow_pairs(evaluation: "Evaluation", posteriors: Sequence[str]) -> None:
    """Refuse log densities of all pictures under all descriptions that take more than about an hour.

    Raises:
        UsageError: They take longer; the message has the number to give.
    """
    samples, pool = importance_samples(evaluation), evaluation.settings.pool
    cost = sum(_cost(evaluation, name) for name in posteriors)
    hours = samples * pool**2 * cost / _speed(evaluation) / 3600
    if hours <= _MOST_HOURS:
        return
    allowed = max(2, int(pool * (_MOST_HOURS / hours) ** 0.5))
    raise UsageError(
        f"retrieval got a pool of {pool:,} with {samples:,} samples each, whose log densities by this flow take about "
        f"{hours:,.1f} hours, expected one at most; use --pool {allowed}, or --samples below {samples:,}"
    )


def _speed(evaluation: "Evaluation") -> float:
    return _SPEED["cuda" if evaluation.loaded.device.type == "cuda" else "cpu"]


def _samples(evaluation: "Evaluation", option: str, few: int, posteriors: tuple[str, ...]) -> int:
    """Return the setting ``option``; ``few`` where it is left out and the densities of ``posteriors`` are slow."""
    settings = evaluation.settings
    slow = any(_cost(evaluation, name) >= SLOW for name in posteriors)
    number: int = getattr(settings, option)
    return few if slow and option not in settings.model_fields_set else number


def _priors(evaluation: "Evaluation") -> tuple[str, ...]:
    return tuple(name for name in evaluation.posteriors if evaluation.ignores_text(name))


def _cost(evaluation: "Evaluation", posterior: str) -> float:
    return evaluation.loaded.posteriors[posterior].log_density_cost
