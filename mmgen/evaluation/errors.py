"""How wrong an importance-weighted estimate may be, as far as its draws can tell, and what to say of it."""

import math
from typing import Any

from torch import Tensor

from mmgen.evaluation.importance import Estimate, Noise, variance_of_mean

__all__ = ["diagnostics", "disagreement", "shared_error", "standard_error", "mean_and_error"]

_SIGMAS = 3.0
"""Two estimates disagree that differ by more than so many standard errors, and by more than what they are known to be
too low by."""
_FEW_DRAWS = 0.1
"""Relative variance of a mean weight (about one over the effective sample size) from which the bias, of which half of
it is only the leading term, can be much larger than that."""


def mean_and_error(values: Tensor) -> tuple[float, float | None]:
    """Return the mean of values [N] and its standard error, None for a single value."""
    count = len(values)
    return float(values.mean()), float(values.std() / math.sqrt(count)) if count > 1 else None


def standard_error(values: Tensor, *noises: Noise) -> float | None:
    """Return the standard error of the mean of ``values`` [N], each of which is an estimate with noise.

    Both in quadrature. Noise that points do not share is part of the spread of their values already, and what they
    share is not: so the former is taken out of the spread, and all of it added. For N points of N estimates that is
    s / sqrt(N); for N points of a few estimates it is hardly less than the noise of those.
    """
    count = len(values)
    if count < 2:
        return None
    between, of_estimates = float(values.var()) / count, 0.0
    for variances, source in noises:
        between -= _estimate_noise(variances, source)
        of_estimates += variance_of_mean(variances, source)
    return math.hypot(math.sqrt(max(between, 0.0)), math.sqrt(of_estimates))


def shared_error(count: int, *noises: Noise) -> float:
    """Return the standard error of the mean that comes from noise shared by several of its values.

    The difference of two scores, point by point, has it from both: values of one description move together.
    """
    if count < 2:
        return 0.0
    return math.sqrt(max(0.0, sum(variance_of_mean(*noise) - _estimate_noise(*noise) for noise in noises)))


def _estimate_noise(variances: Tensor, source: Tensor | None) -> float:
    """Return how much the noise of estimates adds to the variance of N values, divided by N."""
    count = len(variances)
    return (float(variances.sum()) - count * variance_of_mean(variances, source)) / (count * (count - 1))


def disagreement(estimate: Estimate, reference: Estimate) -> float | None:
    """Return the mean of ``reference`` minus ``estimate`` in nats; None if it lies within their errors."""
    difference = float((reference.value - estimate.value).mean())
    noise = math.hypot(estimate.monte_carlo_stderr, reference.monte_carlo_stderr)
    if abs(difference) <= _SIGMAS * noise + estimate.bias_bound + reference.bias_bound:
        return None
    return difference


def diagnostics(result: Estimate, checked: tuple[str, Estimate, Estimate] | None = None) -> dict[str, Any]:
    """Return diagnostics of an importance-sampling estimate, such as its effective sample size, as details of a score.

    Args:
        result: The estimate.
        checked: Where it is through one proposal: its name, and at some of the points what that proposal says and what
            all of them together say.
    """
    variance, error = mean_and_error(result.log_variance)
    details: dict[str, Any] = {
        "samples": result.samples,
        "effective_sample_size": float(result.ess.mean()),
        "smallest_effective_sample_size": float(result.ess.min()),
        "log_weight_variance": variance,
        "log_weight_variance_stderr": error,
        "monte_carlo_stderr": result.monte_carlo_stderr,
        "too_low_by_at_least": result.bias_bound,
    }
    if result.density_error is not None:
        # Examples have probes of their own, so the spread of the values, and with it their standard error, has it.
        details["density_stderr"] = float(result.density_error.square().sum().sqrt()) / len(result.density_error)
        details["density_stderr_of_a_point"] = float(result.density_error.mean())
    warnings = []
    if result.alone:
        details["alone"] = {name: float(one.value.mean()) for name, one in result.alone.items()}
        for name, one in result.alone.items():
            difference = disagreement(one, result)
            if difference is not None:
                warnings.append(
                    _disagreement_warning(name, -difference, "all proposals together, which are what is printed")
                )
    if checked is not None:
        name, single, mixture = checked
        difference = disagreement(single, mixture)
        details["checked"] = {
            "points": len(single.value),
            "alone": float(single.value.mean()),
            "mixture": float(mixture.value.mean()),
        }
        if difference is not None:
            details["too_low_by_at_least"] = max(details["too_low_by_at_least"], difference)
            warnings.append(_disagreement_warning(name, -difference, "all proposals together (--proposal mixture)"))
    if float(result.relative_variance.mean()) > _FEW_DRAWS:
        warnings.append(
            f"few of the {result.samples:,} draws count (effective sample size {float(result.ess.mean()):.1f}): it "
            "may be too low by much more than is printed; take more"
        )
    if warnings:
        details["warnings"] = warnings
    return details


def _disagreement_warning(name: str, difference: float, reference: str) -> str:
    sign = "less" if difference < 0 else "more"
    return f"{name} alone says {abs(difference):.2f} nats {sign} than {reference}, beyond their errors"
