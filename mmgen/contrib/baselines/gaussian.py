"""One Gaussian of full or diagonal covariance, whose likelihood is greatest in closed form.

References:
    Salakhutdinov's lecture on variational autoencoders, "Test Log-probabilities" of BSDS patches: the row PCA
"""

import math
from collections.abc import Generator
from typing import Literal

from pydantic.dataclasses import dataclass

from mmgen.contrib.baselines._density import CONFIG, DensityBaseline, FittedDensity, Numbers, fit_moments

__all__ = ["Gaussian"]


@dataclass(frozen=True, config=CONFIG)
class Gaussian(DensityBaseline):
    r"""One Gaussian N(mu, Sigma) with the mean and covariance of the training examples.

    With a full covariance it is the density of probabilistic PCA that keeps all components.
    """

    covariance: Literal["full", "diagonal"] = "full"
    """Whether columns may depend on one another."""

    def fit(self, train: Numbers, val: Numbers, seed: int) -> Generator[float, None, FittedDensity]:
        shape = fit_moments(train, self.covariance == "diagonal")
        constant = shape.half_log_det + 0.5 * shape.size * math.log(2 * math.pi)
        yield 1.0
        return FittedDensity(lambda x: -0.5 * shape.mahalanobis_squares(x) - constant, {"covariance": self.covariance})
