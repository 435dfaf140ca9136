"""MVTCAE: the joint bound, whose posterior is also regularised towards the posterior of each modality.

References:
    Multi-View Representation Learning via Total Correlation Objective (Hwang, Kim, Hong, Kim, 2021), Eq. 8
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from mmgen.core.batch import Batch
from mmgen.models import Demands, GaussianModel
from mmgen.objectives._base import Bound, prior_kl, warmup_weight
from mmgen.objectives._subsets import SubsetObjective, present_modalities, subset_posteriors

__all__ = ["Mvtcae"]


class Mvtcae(SubsetObjective, settings=True):
    r"""Bound on total correlation: reconstructions from all modalities, divergences to p(z) and to each modality.

    .. math:: \frac{M - \alpha}{M} \, E_{q(z|X)}\Big[\sum_m \lambda_m \log p(x_m|z)\Big]
              - \beta \Big[(1 - \alpha) \, KL(q(z|X) \,\|\, p(z))
              + \frac{\alpha}{M} \sum_m KL(q(z|X) \,\|\, q(z|x_m))\Big]

    With alpha = 0 it is the joint ELBO. A modality that an example lacks has no divergence; M stays.
    """

    alpha: Annotated[float, Field(ge=0, le=1)] = 0.9
    """Share of the divergences to single modalities (paper: 0.9, and 5/6 on PolyMNIST)."""

    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({"alpha": 0.0}, {"alpha": 1.0})

    @property
    def demands(self) -> Demands:
        return self.make_demands("product-without-prior")

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return lambda / beta for alpha = 0; None otherwise, since some divergences are not to p(z)."""
        return super().training_weight(name, kind) if self.alpha == 0 else None

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        names, count = self.modalities, len(self.modalities)
        every = subset_posteriors(model, batch, names, [names, *((name,) for name in names)])
        joint, alone = every[0], every[1:]
        likelihoods = self.log_likelihoods(model, joint.sample(), batch)
        kl = prior_kl(joint)
        present = present_modalities(batch, names)
        apart = joint.kl(alone)
        held = (apart * present).sum(0) / count
        scale = self.beta * warmup_weight(step, self.kl_warmup_steps)
        value = (1 - self.alpha / count) * self.weigh(model, likelihoods)
        value = value - scale * ((1 - self.alpha) * kl + self.alpha * held)
        terms = {f"log p({name}|z)": term for name, term in likelihoods.items()} | {"kl": kl}
        terms |= {f"kl to q(z|{name})": term for name, term in zip(names, apart * present, strict=True)}
        return Bound(value, terms, is_bound=self.alpha == 0 and self.is_unweighted and scale == 1)
