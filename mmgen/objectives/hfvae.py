"""HFVAE: z in groups of dimensions, with weights for the correlation between groups and for that within them.

References:
    Structured Disentangled Representations (Esmaeili, Wu, Jain, Bozkurt, Siddharth, Paige, Brooks, Dy, van de Meent,
    2019), arXiv:1804.02086
"""

import dataclasses
from typing import Annotated, Self

from pydantic import Field, model_validator

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.models import USUAL_NEEDS, Demands, GaussianModel
from mmgen.objectives._aggregate_estimate import check_examples, estimate_aggregate
from mmgen.objectives._base import Bound, Modalities, Objective, RunSettings, check_single_device

__all__ = ["Hfvae"]

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Hfvae(Objective, settings=True):
    r"""The ELBO with its divergence split over two levels, groups g of dimensions d, each term weighted.

    .. math:: E_{q(z|x)}[\log p(x|z)] - \alpha \, I(x; z) - \beta \, KL(q(z) \,\|\, \prod_g q(z_g))
              - \gamma \sum_g KL(q(z_g) \,\|\, \prod_{d \in g} q(z_d)) - \sum_d KL(q(z_d) \,\|\, p(z_d))

    q(z) is estimated from the batch (see :mod:`mmgen.objectives._aggregate_estimate`). With all weights at 1 the
    estimates cancel, and the value is the ELBO with its divergence taken at the draw of z.
    """

    modalities: Modalities = ("image",)
    """What is generated."""
    given: tuple[str, ...] = ("image",)
    """What the posterior sees."""
    groups: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Sizes of two groups at least, one after the other, model.latent_size together; left out, each dimension is a
    group, within which nothing correlates."""
    alpha: Weight = 1.0
    """Weight of the mutual information of x and z."""
    beta: Weight = 4.0
    """Weight of the total correlation between groups (the default is ours)."""
    gamma: Weight = 1.0
    """Weight of the total correlation within groups (the default is ours, as the ELBO has it)."""
    examples: Annotated[int, Field(ge=1)] | None = None
    """N, examples that q(z) is a mixture of, a batch at least; left out, all that training draws from."""

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if len(self.groups) == 1:
            raise ValueError(
                f"groups got one group of {self.groups[0]} dimensions, expected at least two groups, whose correlation "
                "is weighted; divide z into more groups, or leave groups out"
            )
        if self.gamma != 1 and max(self.groups, default=1) == 1:
            raise ValueError(
                f"gamma got {self.gamma:g}, but no group has several dimensions that could correlate; give groups too, "
                "or leave gamma out"
            )
        return self

    @property
    def demands(self) -> Demands:
        inference = "image-only" if self.given == ("image",) else "joint"
        return Demands(frozenset([self.given]), self.modalities, inference=inference, needs=USUAL_NEEDS | {"gaussian"})

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return 1 if all weights are 1; else None, since q(z) as a whole is regularised."""
        return 1.0 if self.alpha == self.beta == self.gamma == 1 else None

    def check_run(self, training: RunSettings) -> str:
        check_single_device("hfvae", training)
        check_examples(self.examples, training)
        return ""

    def for_training_size(self, examples: int) -> Self:
        return self if self.examples else dataclasses.replace(self, examples=examples)

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        if self.groups and sum(self.groups) != model.latent_size:
            raise SettingsError(
                f"objective.groups got {', '.join(map(str, self.groups))}, {sum(self.groups)} dimensions together, "
                f"expected sizes that add up to the {model.latent_size} of model.latent_size; change either"
            )
        q = model.posterior(batch, self.given)
        z = q.sample()
        likely = {f"log p({name}|z)": model.log_likelihood(name, z, batch) for name in self.modalities}
        found = estimate_aggregate(z, q, self.examples, self.groups)
        terms = {
            "mutual information": found.mutual_information,
            "total correlation between groups": found.between_groups,
            "total correlation within groups": found.within_groups,
            "dimension-wise kl": found.dimension_wise,
        }
        weights = (self.alpha, self.beta, self.gamma, 1.0)
        parts = (weight * term for weight, term in zip(weights, terms.values(), strict=True))
        value = sum(likely.values(), -sum(parts, z.new_zeros(())))
        return Bound(value, likely | terms, is_bound=weights == (1, 1, 1, 1))
