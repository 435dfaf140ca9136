"""One Gaussian of full or diagonal covariance, whose likelihood is greatest in closed form.

References:
    Salakhutdinov's lecture on variational autoencoders, "Test Log-probabilities" of BSDS patches: the row PCA
"""

import math
from collections.abc import Generator
from typing import Literal

from pydantic.dataclasses import dataclass

from mmgen.baselines._density import CONFIG, DensityBaseline, FittedDensity, Numbers, Shape, shape_of

__all__ = ["Gaussian"]


class _Fitted(FittedDensity):
    def __init__(self, shape: Shape, covariance: str) -> None:
        self.shape = shape
        self.facts = {"covariance": covariance}

    def log_prob(self, x: Numbers) -> Numbers:
        constant = self.shape.half_log_det + 0.5 * self.shape.size * math.log(2 * math.pi)
        return -0.5 * self.shape.squares(x) - constant


@dataclass(frozen=True, config=CONFIG)
class Gaussian(DensityBaseline):
    r"""N(mu, Sigma) with the mean and covariance of the training examples.

    With a full covariance it is the density of probabilistic PCA that keeps all components.
    """

    covariance: Literal["full", "diagonal"] = "full"
    """Whether columns may depend on one another."""

    def fit(self, train: Numbers, val: Numbers, seed: int) -> Generator[float, None, FittedDensity]:
        shape = shape_of(train, self.covariance == "diagonal")
        yield 1.0
        return _Fitted(shape, self.covariance)
