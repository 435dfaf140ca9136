"""Gaussians of one shape and several scales: a patch's contrast is drawn, its texture is Gaussian.

References:
    Scale mixtures of Gaussians and the statistics of natural images (Wainwright, Simoncelli, NIPS 1999)
"""

from collections.abc import Generator
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.contrib.baselines._density import (
    CONFIG,
    DensityBaseline,
    FittedDensity,
    Numbers,
    fit_moments,
    fit_scales,
    log_scale_mixture,
)

__all__ = ["GaussianScaleMixture"]


@dataclass(frozen=True, config=CONFIG)
class GaussianScaleMixture(DensityBaseline):
    r"""A mixture of Gaussians with one mean, whose covariances are multiples of that of the training examples.

    .. math:: p(x) = \sum_k w_k \, N(x; \mu, s_k^2 \Sigma)
    """

    scales: Annotated[int, Field(ge=1, le=10_000)] = 40
    """K."""
    iterations: Annotated[int, Field(ge=1)] = 500
    """Steps of expectation maximisation at most; fewer where another one would bring less than 0.00001 nats."""

    def fit(self, train: Numbers, val: Numbers, seed: int) -> Generator[float, None, FittedDensity]:
        shape = fit_moments(train)
        squares = shape.mahalanobis_squares(train)
        weights, scales, steps = yield from fit_scales(squares, shape.size, self.scales, self.iterations)
        yield 1.0

        def log_prob(x: Numbers) -> Numbers:
            return log_scale_mixture(shape.mahalanobis_squares(x), shape.size, weights, scales) - shape.half_log_det

        return FittedDensity(log_prob, {"scales": len(scales), "em_steps": steps})
