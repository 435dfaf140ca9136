"""Weights and scales of Gaussians that share everything else, by expectation maximisation."""

import math
from collections.abc import Generator

import numpy as np
from scipy.special import logsumexp

from mmgen.baselines._density import Numbers

__all__ = ["fit_scales", "log_scale_mixture"]

_ENOUGH = 1e-5  # nats an example that another step must bring
_BLOCK = 8192  # examples that are looked at together


def log_scale_mixture(squares: Numbers, size: int, log_weights: Numbers, log_scales: Numbers) -> Numbers:
    r"""Compute the log density of a mixture of centred Gaussians of several scales, from squared lengths |x|^2.

    .. math:: \log \sum_k w_k s_k^{-F} \exp(-|x|^2 / 2 s_k^2) - \frac{F}{2} \log 2 \pi

    Args:
        squares: |x|^2 [N].
        size: F.
        log_weights: log w_k [K].
        log_scales: log s_k [K].

    Returns:
        [N], nats.
    """
    return np.asarray(logsumexp(_log_components(squares, size, log_weights, log_scales), axis=1))


def _log_components(squares: Numbers, size: int, log_weights: Numbers, log_scales: Numbers) -> Numbers:
    constant = log_weights - size * (log_scales + 0.5 * math.log(2 * math.pi))
    return np.asarray(constant - 0.5 * squares[:, None] * np.exp(-2 * log_scales))


def fit_scales(
    squares: Numbers, size: int, count: int, iterations: int
) -> Generator[float, None, tuple[Numbers, Numbers, int]]:
    """Fit the weights and scales of ``count`` centred Gaussians to squared lengths, by expectation maximisation."""
    own = np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny) / size)  # the scale that suits each example best
    low, high = np.log(np.quantile(own, [0.001, 0.999]))
    log_scales = np.linspace(low, max(high, low + 1e-3), count)
    log_weights, before = np.full(count, -math.log(count)), -math.inf
    for step in range(iterations):
        yield step / iterations
        total, mass, power = 0.0, np.zeros(count), np.zeros(count)
        for start in range(0, len(squares), _BLOCK):
            some = squares[start : start + _BLOCK]
            terms = _log_components(some, size, log_weights, log_scales)
            norm = logsumexp(terms, axis=1, keepdims=True)
            share = np.exp(terms - norm)
            total += float(norm.sum())
            mass += share.sum(0)
            power += some @ share
        if total / len(squares) - before < _ENOUGH:
            return log_weights, log_scales, step
        before = total / len(squares)
        kept = mass > 1e-9 * len(squares)  # a scale that explains nothing stays where it is, with hardly any weight
        log_scales = np.where(
            kept, 0.5 * np.log(np.where(kept, power / (size * np.maximum(mass, 1e-300)), 1.0)), log_scales
        )
        log_weights = np.log(np.maximum(mass, 1e-300) / len(squares))
    return log_weights, log_scales, iterations
