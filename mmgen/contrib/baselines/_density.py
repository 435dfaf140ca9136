"""The base of densities of real numbers, whose log p is exact, and Gaussian scale mixtures."""

import math
from abc import abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import logsumexp

from mmgen.contrib.baselines._base import Baseline
from mmgen.core.errors import DataError

CONFIG = ConfigDict(extra="forbid", use_attribute_docstrings=True)
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class FittedDensity:
    """A density over F numbers that was fitted to training examples.

    Attributes:
        log_prob: Function from x [N, F] to log p [N] in nats.
        facts: Results of the fit by name, plain values.
    """

    log_prob: Callable[[Numbers], Numbers]
    facts: dict[str, Any]


class DensityBaseline(Baseline):
    """Base of densities to fit. Members are frozen dataclasses; ``mmgen baseline --set`` sets their fields."""

    answers: ClassVar[Literal["labels", "densities"]] = "densities"

    @abstractmethod
    def fit(self, train: Numbers, val: Numbers, seed: int) -> Generator[float, None, FittedDensity]:
        """Fit the density to training examples; yield the fraction done, and return the fitted density."""


class GaussianMoments:
    """The mean and covariance of training examples, with the covariance's Cholesky factor.

    Args:
        mean: [F].
        covariance: [F, F], positive definite.

    Raises:
        DataError: The covariance is singular.
    """

    def __init__(self, mean: Numbers, covariance: Numbers) -> None:
        self.mean, self.size = mean, len(mean)
        try:
            self._factor = cho_factor(covariance, lower=True)
        except np.linalg.LinAlgError:
            raise DataError(
                f"the covariance of {self.size} columns over the training examples is singular, which leaves no "
                "density; leave out columns that others determine, or use more examples"
            ) from None
        self.half_log_det = float(np.log(np.diag(self._factor[0])).sum())

    def mahalanobis_squares(self, x: Numbers) -> Numbers:
        """Return squared Mahalanobis distances [N] of x [N, F]."""
        return np.asarray(np.square(solve_triangular(self._factor[0], (x - self.mean).T, lower=True)).sum(0))

    @property
    def precision(self) -> Numbers:
        """Compute the inverse of the covariance [F, F]."""
        return np.asarray(cho_solve(self._factor, np.eye(self.size)))


def fit_moments(train: Numbers, diagonal: bool = False) -> GaussianMoments:
    """Compute the mean and covariance of training examples, by maximum likelihood."""
    if len(train) < 2:
        raise DataError(f"got {len(train)} training examples, expected at least 2 for a covariance; use more of them")
    covariance = np.atleast_2d(np.cov(train.T, bias=True))
    return GaussianMoments(train.mean(0), np.diag(np.diag(covariance)) if diagonal else covariance)


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
