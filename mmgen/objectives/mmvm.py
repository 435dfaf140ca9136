"""MMVM: each modality has its own z, and all posteriors are regularised towards their mixture.

References:
    Unity by Diversity: Improved Representation Learning in Multimodal VAEs (Sutter, Meng, Agostini, Chopard, Fortin,
    Vogt, Shahbaba, Mandt, 2024), arXiv:2403.05300, Eq. 3 and 4
"""

import torch

from mmgen.core.batch import Batch
from mmgen.latent.mixture import GaussianMixture
from mmgen.models import Demands, GaussianModel
from mmgen.objectives._base import Bound, warmup_weight
from mmgen.objectives._subsets import SubsetObjective, present_modalities, subset_posteriors

__all__ = ["Mmvm"]


class Mmvm(SubsetObjective, settings=True):
    r"""Reconstruction of each modality from its own posterior, which is regularised towards the mean of all posteriors.

    .. math:: \sum_m \Big( \lambda_m \, E_{q(z_m|x_m)} \log p(x_m|z_m) - \beta \, KL(q(z_m|x_m) \,\|\, h(z_m|X)) \Big),
              \quad h(z|X) = \frac{1}{M} \sum_n q(z|x_n)

    The divergence is estimated at the draw. Nothing holds z to p(z): draw from a fitted q(z) instead. It is no bound on
    the likelihood of the data, since the prior h depends on them.
    """

    @property
    def demands(self) -> Demands:
        return self.make_demands("mixture-of-experts", "mixture")

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return None: its divergences are not to p(z), so no power of p(y|z) times p(z) is what it fits."""
        return None

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        names = self.modalities
        q = subset_posteriors(model, batch, names, [(name,) for name in names])  # [M, B, D]
        present = present_modalities(batch, names)
        z = q.sample()
        ratio = q.log_prob(z) - GaussianMixture.even(q, present).log_prob(z)  # [M, B]
        divergence = torch.where(present, ratio, 0.0)
        own = {name: model.log_likelihood(name, each, batch) for name, each in zip(names, z, strict=True)}
        scale = self.beta * warmup_weight(step, self.kl_warmup_steps)
        terms = {f"log p({name}|z)": term for name, term in own.items()}
        terms |= {f"kl of q(z|{name}) to the mixture": term for name, term in zip(names, divergence, strict=True)}
        return Bound(self.weigh(model, own) - scale * divergence.sum(0), terms)
