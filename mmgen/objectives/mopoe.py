"""MoPoE: the mean of the bounds through the posteriors of all subsets of modalities.

References:
    Generalized Multimodal ELBO (Sutter, Daunhawer, Vogt, 2021), arXiv:2105.02470, Eq. 6
"""

import torch

from mmgen.core.batch import Batch
from mmgen.inference import every_subset
from mmgen.models import Demands, GaussianModel
from mmgen.objectives._base import Bound, prior_kl, warmup_weight
from mmgen.objectives._subsets import SubsetObjective, mean_where, present_modalities, subset_posteriors

__all__ = ["Mopoe"]


class Mopoe(SubsetObjective, settings=True):
    r"""Mean over all subsets S of modalities of the bound on log p(X) through the product of experts q_S(z).

    .. math:: \frac{1}{2^M - 1} \sum_S \Big( E_{q_S(z)}\Big[\sum_m \lambda_m \log p(x_m|z)\Big]
              - \beta \, KL(q_S(z) \,\|\, p(z)) \Big)

    The divergences are those of all subsets, and z is drawn from one subset of each example, at random, so that a step
    decodes once. Its mean is below the bound with the divergence of the mixture, which has no closed form. (The
    published code gives subsets to examples by their place in the batch; the mean is the same in large batches.)
    A subset of which an example lacks a modality does not count for it.
    """

    @property
    def demands(self) -> Demands:
        return self.make_demands("mixture-of-products", "mixture")

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        names = self.modalities
        subsets = every_subset(names)
        q = subset_posteriors(model, batch, names, subsets)  # [S, B, D]
        present = present_modalities(batch, names)
        held = torch.stack([present[[names.index(name) for name in subset]].all(0) for subset in subsets])
        divergence = mean_where(prior_kl(q), held)
        chosen = torch.multinomial((held | ~held.any(0)).float().T, 1).squeeze(1)
        likelihoods = self.log_likelihoods(
            model, q[chosen, torch.arange(batch.size, device=chosen.device)].sample(), batch
        )
        scale = self.beta * warmup_weight(step, self.kl_warmup_steps)
        value = self.weigh(model, likelihoods) - scale * divergence
        terms = {f"log p({name}|z)": term for name, term in likelihoods.items()} | {"kl": divergence}
        return Bound(value, terms, is_bound=self.is_unweighted and scale == 1)
