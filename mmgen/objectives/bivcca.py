"""Mean of the two one-sided bounds of a bi-modal variational CCA.

References:
    Deep Variational Canonical Correlation Analysis (Wang, Yan, Lee, Livescu, 2016), arXiv:1610.03454
"""

from typing import Annotated

from pydantic import Field

from mmgen.core.batch import Batch
from mmgen.models import Demands, GaussianModel
from mmgen.objectives._base import (
    Bound,
    Objective,
    expected_log_likelihood,
    prior_kl,
    relative_weight,
    warmup_weight,
)

__all__ = ["Bivcca"]


class Bivcca(Objective, settings=True):
    r"""Weighted mean of two bounds, one through q(z|x) and one through q(z|y).

    .. math:: \mu \, L(q(z|x)) + (1 - \mu) \, L(q(z|y)), \quad
              L(q) = E_q[\log p(x|z) + \lambda \log p(y|z)] - KL(q \,\|\, p(z))  \qquad \text{(VE Section 4)}
    """

    mu: Annotated[float, Field(ge=0, le=1)] = 0.7
    """Weight of the image side (VE Section 5.1 uses 0.7)."""
    observation: str = "image"
    """Modality that is described, x: an image, or data of any other kind."""
    description: str = "attributes"
    """Modality that describes it, y: attributes or text."""
    attributes_weight: Annotated[float, Field(ge=0)] = 50.0
    """lambda_y, of the description whatever it is."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the divergences."""
    kl_warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the divergences are switched on."""

    @property
    def demands(self) -> Demands:
        both = (self.observation, self.description)
        return Demands(frozenset((side,) for side in both), generates=both)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        r"""Return lambda / beta: \mu and 1 - \mu, the weights of the two bounds, do not change this ratio."""
        return relative_weight(self.attributes_weight, self.beta)

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        scale = self.beta * warmup_weight(step, self.kl_warmup_steps)
        x, y = self.observation, self.description
        terms, bounds = {}, []
        for side, share in ((x, self.mu), (y, 1 - self.mu)):
            q = model.posterior(batch, (side,))
            likelihoods = expected_log_likelihood(model, batch, q, (x, y))
            kl = prior_kl(q)
            bounds.append(share * (likelihoods[x] + self.attributes_weight * likelihoods[y] - scale * kl))
            terms[f"log p({x}|z), z from {side}"] = likelihoods[x]
            terms[f"log p({y}|z), z from {side}"] = likelihoods[y]
            terms[f"kl, z from {side}"] = kl
        return Bound(bounds[0] + bounds[1], terms, is_bound=self.attributes_weight == 1 and scale >= 1)
