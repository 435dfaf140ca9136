"""CRMVAE: the joint posterior is regularised towards that of each modality, and every posterior reconstructs.

References:
    Mitigating the Limitations of Multimodal VAEs with Coordination-Based Approach (Suzuki, Matsuo, 2023),
    https://openreview.net/forum?id=Rn8u4MYgeNJ
"""

from mmgen.core.batch import Batch
from mmgen.models import Demands, GaussianModel
from mmgen.objectives._base import Bound, prior_kl, warmup_weight
from mmgen.objectives._subsets import SubsetObjective, present_modalities, subset_posteriors

__all__ = ["Crmvae"]


class Crmvae(SubsetObjective, settings=True):
    r"""Reconstructions of a modality from all modalities and from itself, and divergences of the joint posterior.

    .. math:: \frac{1}{M + 1} \Big( \sum_m \frac{\lambda_m}{2} \big( E_{q(z|X)} \log p(x_m|z) + E_{q(z|x_m)}
              \log p(x_m|z) \big) - \beta \, KL(q(z|X) \,\|\, p(z)) - \beta \sum_m KL(q(z|X) \,\|\, q(z|x_m)) \Big)

    A modality that an example lacks has neither reconstruction nor divergence; M stays.
    """

    @property
    def demands(self) -> Demands:
        return self.make_demands("product-without-prior")

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return None: half of the reconstructions come from a posterior that no divergence holds to p(z)."""
        return None

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        names, parts = self.modalities, len(self.modalities) + 1
        every = subset_posteriors(model, batch, names, [names, *((name,) for name in names)])
        joint, alone, z = every[0], every[1:], every.sample()  # [1 + M, B, D]
        # Each decoder runs once, on z of all modalities and on z of its own.
        both = {name: model.log_likelihood(name, z[[0, 1 + number]], batch) for number, name in enumerate(names)}
        present = present_modalities(batch, names)
        kl, apart = prior_kl(joint), joint.kl(alone) * present
        scale = self.beta * warmup_weight(step, self.kl_warmup_steps)
        reconstructed = self.weigh(model, {name: term.mean(0) for name, term in both.items()})
        value = (reconstructed - scale * (kl + apart.sum(0))) / parts
        terms = {f"log p({name}|z)": term[0] for name, term in both.items()} | {"kl": kl}
        terms |= {f"log p({name}|z), {name} alone": term[1] for name, term in both.items()}
        terms |= {f"kl to q(z|{name})": term for name, term in zip(names, apart, strict=True)}
        return Bound(value, terms)
