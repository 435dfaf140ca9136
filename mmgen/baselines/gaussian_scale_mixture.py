"""Gaussians of one shape and several scales: a patch's contrast is drawn, its texture is Gaussian.

References:
    Scale mixtures of Gaussians and the statistics of natural images (Wainwright, Simoncelli, NIPS 1999)
"""

from collections.abc import Generator
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.baselines._density import CONFIG, DensityBaseline, FittedDensity, Numbers, Shape, shape_of
from mmgen.baselines._scales import fit_scales, log_scale_mixture

__all__ = ["GaussianScaleMixture"]


class _Fitted(FittedDensity):
    def __init__(self, shape: Shape, log_weights: Numbers, log_scales: Numbers, steps: int) -> None:
        self.shape, self.log_weights, self.log_scales = shape, log_weights, log_scales
        self.facts = {"scales": len(log_scales), "em_steps": steps}

    def log_prob(self, x: Numbers) -> Numbers:
        squares = self.shape.squares(x)
        return log_scale_mixture(squares, self.shape.size, self.log_weights, self.log_scales) - self.shape.half_log_det


@dataclass(frozen=True, config=CONFIG)
class GaussianScaleMixture(DensityBaseline):
    r"""Mean and covariance of the training examples, and scales of it with weights.

    .. math:: p(x) = \sum_k w_k \, N(x; \mu, s_k^2 \Sigma)
    """

    scales: Annotated[int, Field(ge=1, le=10_000)] = 40
    """K."""
    iterations: Annotated[int, Field(ge=1)] = 500
    """Steps of expectation maximisation at most; fewer where another one would bring less than 0.00001 nats."""

    def fit(self, train: Numbers, val: Numbers, seed: int) -> Generator[float, None, FittedDensity]:
        shape = shape_of(train)
        found = yield from fit_scales(shape.squares(train), shape.size, self.scales, self.iterations)
        yield 1.0
        return _Fitted(shape, *found)
