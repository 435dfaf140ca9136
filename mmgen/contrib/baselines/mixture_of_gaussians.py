"""A mixture of Gaussians with a full covariance each, by scikit-learn.

References:
    Natural images, Gaussian mixtures and dead leaves (Zoran, Weiss, NIPS 2012): 200 of them model 8x8 patches well
"""

import warnings
from collections.abc import Generator
from typing import Annotated

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.contrib.baselines._density import CONFIG, DensityBaseline, FittedDensity, Numbers
from mmgen.core.errors import DataError
from mmgen.core.seeding import stream_key

__all__ = ["MixtureOfGaussians"]

_AT_ONCE = 5  # steps between two looks at the progress


@dataclass(frozen=True, config=CONFIG)
class MixtureOfGaussians(DensityBaseline):
    r"""A mixture of K Gaussians fitted by expectation maximisation; validation examples choose K.

    Each begins with random training examples as means, as k-means would divide them.
    """

    components: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (50,)
    """Numbers of Gaussians that are tried (Zoran and Weiss: 200)."""
    iterations: Annotated[int, Field(ge=1)] = 100
    """Steps of expectation maximisation at most."""
    floor: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-8
    """Added to every variance; the noise between two levels of a patch has 0.0000013."""

    def fit(self, train: Numbers, val: Numbers, seed: int) -> Generator[float, None, FittedDensity]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture

        if max(2, *self.components) > len(train):
            raise DataError(
                f"{len(train):,} training examples are too few for {max(self.components):,} Gaussians; "
                "set fewer components"
            )
        best, chosen, found = -np.inf, 0, None
        tried: dict[str, float] = {}
        for place, number in enumerate(self.components):
            model = GaussianMixture(
                number,
                max_iter=_AT_ONCE,
                warm_start=True,
                reg_covar=self.floor,
                random_state=stream_key(seed, "mixture") % 2**32,
            )
            bound = -np.inf
            for step in range(0, self.iterations, _AT_ONCE):
                yield (place + step / self.iterations) / len(self.components)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # it is asked for some steps at a time
                    try:
                        model.fit(train)
                    except ValueError as error:  # scikit-learn's, of a covariance that is singular
                        raise DataError(
                            f"one of {number:,} Gaussians has collapsed onto examples that are nearly the same, with a "
                            f"floor of {self.floor:g}; set floor higher, or fewer components"
                        ) from error
                if model.lower_bound_ - bound < 1e-3 * _AT_ONCE:
                    break
                bound = model.lower_bound_
            value = float(model.score(val if len(val) else train))
            tried[str(number)] = value
            if value > best:
                best, chosen, found = value, number, model
        yield 1.0
        assert found is not None
        return FittedDensity(found.score_samples, {"components": chosen, "validation": tried})
