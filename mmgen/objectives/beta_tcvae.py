"""beta-TCVAE: the divergence to p(z) in three parts, each with a weight; the total correlation weighs most.

References:
    Isolating Sources of Disentanglement in Variational Autoencoders (Chen, Li, Grosse, Duvenaud, 2018),
    arXiv:1802.04942, Eq. 2 and 4, Appendix C.2
"""

import dataclasses
from typing import Annotated, Self

from pydantic import Field

from mmgen.core.batch import Batch
from mmgen.models import USUAL_NEEDS, Demands, GaussianModel
from mmgen.objectives._aggregate_estimate import check_examples, estimate_aggregate
from mmgen.objectives._base import (
    Bound,
    Modalities,
    Objective,
    RunSettings,
    check_single_device,
    relative_weight,
)

__all__ = ["BetaTcvae"]

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BetaTcvae(Objective, settings=True):
    r"""The ELBO with its divergence split into mutual information, total correlation and the rest, each weighted.

    .. math:: E_{q(z|x)}[\log p(x|z)] - \alpha \, I(x; z) - \beta \, KL(q(z) \,\|\, \prod_j q(z_j))
              - \gamma \sum_j KL(q(z_j) \,\|\, p(z_j))  \qquad \text{(Chen Eq. 4)}

    q(z) is estimated from the batch with stratified weights (see :mod:`mmgen.objectives._aggregate_estimate`). With all
    three weights at 1 the estimates cancel, and the value is the ELBO with its divergence taken at the draw of z.
    """

    modalities: Modalities = ("image",)
    """What is generated; image alone is the paper's model."""
    given: tuple[str, ...] = ("image",)
    """What the posterior sees."""
    alpha: Weight = 1.0
    """Weight of the mutual information of x and z (Chen: 1)."""
    beta: Weight = 6.0
    """Weight of the total correlation of z (Chen on dSprites: 6, from memory)."""
    gamma: Weight = 1.0
    """Weight of the divergences of single dimensions to p(z) (Chen: 1)."""
    examples: Annotated[int, Field(ge=1)] | None = None
    """N, examples that q(z) is a mixture of, a batch at least; left out, all that training draws from."""

    @property
    def demands(self) -> Demands:
        inference = "image-only" if self.given == ("image",) else "joint"
        return Demands(frozenset([self.given]), self.modalities, inference=inference, needs=USUAL_NEEDS | {"gaussian"})

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return 1 / beta if all three weights are beta; else None, since q(z) as a whole is regularised."""
        return relative_weight(1.0, self.beta) if self.alpha == self.beta == self.gamma else None

    def check_run(self, training: RunSettings) -> str:
        check_single_device("beta-tcvae", training)
        check_examples(self.examples, training)
        return ""

    def for_training_size(self, examples: int) -> Self:
        return self if self.examples else dataclasses.replace(self, examples=examples)

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        q = model.posterior(batch, self.given)
        z = q.sample()
        likely = {f"log p({name}|z)": model.log_likelihood(name, z, batch) for name in self.modalities}
        found = estimate_aggregate(z, q, self.examples)
        terms = {
            "mutual information": found.mutual_information,
            "total correlation": found.total_correlation,
            "dimension-wise kl": found.dimension_wise,
        }
        weights = (self.alpha, self.beta, self.gamma)
        parts = (weight * term for weight, term in zip(weights, terms.values(), strict=True))
        value = sum(likely.values(), -sum(parts, z.new_zeros(())))
        return Bound(value, likely | terms, is_bound=weights == (1, 1, 1))
