"""The base of densities of real numbers, whose log p is exact."""

from abc import abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from mmgen.baselines._base import Baseline
from mmgen.core.errors import DataError

__all__ = ["CONFIG", "DensityBaseline", "FittedDensity", "Numbers", "GaussianMoments", "fit_moments"]

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
