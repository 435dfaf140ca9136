"""The bound of images and attributes whose divergence is weighted by a temperature."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.core.batch import Batch
from mmgen.models import Demands, GaussianModel
from mmgen.objectives import CONFIG, Bound, Objective, expected_log_likelihood, prior_kl

__all__ = ["WarmElbo"]

_BOTH = ("image", "attributes")


@dataclass(frozen=True, config=CONFIG)
class WarmElbo(Objective):
    r"""A bound below one temperature, and no bound above it.

    .. math:: E_{q(z|x, y)}[\log p(x|z) + \log p(y|z)] - KL(q(z|x, y) \,\|\, p(z)) / t
    """

    temperature: Annotated[float, Field(gt=0)] = 1.0
    """t: above 1 the posterior may lie further from the prior."""

    @property
    def demands(self) -> Demands:
        """q(z | x, y) alone."""
        return Demands(posteriors=frozenset([_BOTH]))

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """t: what log p(y|z) weighs against the divergence."""
        return self.temperature

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        """The objective on a batch, with one sample of z per example."""
        q = model.posterior(batch, _BOTH)
        likelihoods = expected_log_likelihood(model, batch, q, _BOTH)
        kl = prior_kl(q)
        value = likelihoods["image"] + likelihoods["attributes"] - kl / self.temperature
        terms = {f"log p({name}|z)": likelihoods[name] for name in _BOTH} | {"kl": kl}
        return Bound(value, terms, is_bound=self.temperature <= 1)
