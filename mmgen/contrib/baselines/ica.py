"""Independent components: a square linear map, under which every coordinate has a density of its own.

References:
    Independent component analysis: algorithms and applications (Hyvarinen, Oja, Neural Networks 2000),
    https://doi.org/10.1016/S0893-6080(00)00026-5: FastICA, here scikit-learn's
"""

import warnings
from collections.abc import Generator
from typing import Annotated

import numpy as np
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
from mmgen.core.errors import DataError
from mmgen.core.progress import map_fractions
from mmgen.core.seeding import stream_key

__all__ = ["Ica"]

_GROUPS = 4096  # examples of nearly one square are one to the fit of a coordinate's density, which keeps their power


@dataclass(frozen=True, config=CONFIG)
class Ica(DensityBaseline):
    r"""Independent component analysis: x = A s, where each coordinate of s has a mixture of centred Gaussians.

    .. math:: \log p(x) = \log |\det W| + \sum_i \log \sum_k w_{ik} N(w_i^\top (x - \mu); 0, s_{ik}^2)
    """

    scales: Annotated[int, Field(ge=1, le=1000)] = 12
    """Gaussians for each coordinate."""
    examples: Annotated[int, Field(ge=2)] = 20_000
    """Training examples that FastICA looks at; densities of coordinates are fitted to all."""
    iterations: Annotated[int, Field(ge=1)] = 200
    """Steps of FastICA at most; what has not converged by then is used as it is."""

    def fit(self, train: Numbers, val: Numbers, seed: int) -> Generator[float, None, FittedDensity]:
        from sklearn.decomposition import FastICA
        from sklearn.exceptions import ConvergenceWarning

        looked, columns = min(self.examples, len(train)), train.shape[1]
        if looked <= columns:
            raise DataError(
                f"ica looks at {looked:,} training examples, too few for {columns:,} columns, expected at least "
                f"{columns + 1:,}; set examples higher, or use more of them"
            )
        fit_moments(train)  # refuses what is singular
        yield 0.01
        some = np.random.default_rng(stream_key(seed, "ica examples")).permutation(len(train))[: self.examples]
        model = FastICA(
            whiten="unit-variance", max_iter=self.iterations, random_state=stream_key(seed, "ica") % 2**32, tol=1e-3
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model.fit(train[some])
        filters, mean = np.asarray(model.components_), np.asarray(model.mean_)
        sources = (train - mean) @ filters.T
        scales = []
        for number, column in enumerate(sources.T):
            start, share = 0.5 + 0.5 * number / len(filters), 0.5 / len(filters)
            groups = np.array_split(np.sort(np.square(column)), min(_GROUPS, len(column)))
            squares = np.array([group.mean() for group in groups])
            found = yield from map_fractions(fit_scales(squares, 1, self.scales, 100), start, share)
            scales.append(found[:2])
        converged = not any(issubclass(one.category, ConvergenceWarning) for one in caught)
        yield 1.0

        def log_prob(x: Numbers) -> Numbers:
            value = np.full(len(x), float(np.linalg.slogdet(filters)[1]))
            for column, (log_weights, log_scales) in zip(((x - mean) @ filters.T).T, scales, strict=True):
                value += log_scale_mixture(np.square(column), 1, log_weights, log_scales)
            return value

        facts = {"scales": self.scales, "fastica_steps": int(model.n_iter_), "converged": converged}
        return FittedDensity(log_prob, facts)
