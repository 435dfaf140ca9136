"""MMVAE: importance-weighted bounds through a mixture of experts, drawn from each expert in turn.

References:
    Variational Mixture-of-Experts Autoencoders for Multi-Modal Deep Generative Models (Shi, Siddharth, Paige, Torr,
    2019), arXiv:1911.03393, Eq. 3 and Appendix A
    Doubly Reparameterized Gradient Estimators for Monte Carlo Objectives (Tucker, Lawson, Gu, Maddison, 2019)
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.mixture import GaussianMixture
from mmgen.models import Demands, GaussianModel
from mmgen.objectives._base import Bound, warmup_weight
from mmgen.objectives._subsets import SubsetObjective, mean_where, present_modalities, subset_posteriors

__all__ = ["Mmvae"]


class Mmvae(SubsetObjective, settings=True):
    r"""Mean over modalities of the bound from K draws of that modality's posterior, weighed by the mixture's density.

    .. math:: \frac{1}{M} \sum_m E_{z_k \sim q(z|x_m)} \log \frac{1}{K} \sum_{k=1}^K \prod_n p(x_n|z_k)^{\lambda_n}
              \Big(\frac{p(z_k)}{q(z_k|X)}\Big)^\beta, \quad q(z|X) = \frac{1}{M} \sum_n q(z|x_n)

    This is the looser of the two bounds that the paper names, which its experiments train. Modalities that an example
    lacks are left out of both sums.
    """

    draws: Annotated[int, Field(ge=1)] = 1
    """K, draws from each modality's posterior (paper: 30, 50 and 10)."""
    gradient: Literal["iwae", "dreg"] = "iwae"
    """Gradient of the encoders: of the bound itself, or doubly reparameterised (DReG), which is quieter for many draws
    and, for more than one, not quite that of the bound: a weight holds the mixture, its draw comes from one expert (6 %
    off for two). The value is that of the bound in both."""

    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({"draws": 3}, {"draws": 3, "gradient": "dreg"})
    _bounds: ClassVar[bool] = True

    @property
    def demands(self) -> Demands:
        return self.make_demands("mixture-of-experts", "mixture")

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        names = self.modalities
        q = subset_posteriors(model, batch, names, [(name,) for name in names])  # [M, B, D]
        present = present_modalities(batch, names)
        z = q.sample(shape=(self.draws,))  # [K, M, B, D]
        density, draws = q, z
        if self.gradient == "dreg":
            density = q.detach()
            draws = z.detach().requires_grad_(z.requires_grad)
        likelihoods = self.log_likelihoods(model, draws, batch)
        ratio = self.log_ratio(model, draws, density, present)
        log_weight = self.weigh(model, likelihoods) + self.beta * warmup_weight(step, self.kl_warmup_steps) * ratio
        bound = log_weight.logsumexp(0) - math.log(self.draws)  # [M, B]
        if self.gradient == "dreg":
            bound = _with_doubly_reparameterised_gradient(bound, log_weight, draws, z, self.inferred_layers(model))
        terms = {f"log p({name}|z)": mean_where(term.mean(0), present) for name, term in likelihoods.items()}
        terms["kl"] = -mean_where(ratio.mean(0), present)
        exact = self._bounds and self.is_unweighted and warmup_weight(step, self.kl_warmup_steps) == 1
        return Bound(mean_where(bound, present), terms, is_bound=exact)

    def inferred_layers(self, model: GaussianModel) -> Tensor:
        """Return which dimensions of z each modality's posterior infers, bool [M, 1, D]."""
        return torch.ones(len(self.modalities), 1, model.latent_size, dtype=torch.bool)

    def log_ratio(self, model: GaussianModel, z: Tensor, q: DiagonalGaussian, present: Tensor) -> Tensor:
        """Return log p(z) - log q(z | X) [K, M, B] in nats of draws z [K, M, B, D] from experts q [M, B, D]."""
        return model.log_prior(z) - GaussianMixture.even(q, present).log_prob(z)


def _with_doubly_reparameterised_gradient(
    bound: Tensor, log_weight: Tensor, draws: Tensor, z: Tensor, inferred: Tensor
) -> Tensor:
    """Return the bound [M, B] with the gradient of Tucker et al. (Eq. 8): encoders get it through z, weighed twice."""
    if not z.requires_grad:
        return bound
    shares = log_weight.detach().softmax(0)
    (by_draws,) = torch.autograd.grad(log_weight.sum(), draws, retain_graph=True)
    # What is drawn from a density that is no part of the weight is weighed once.
    weights = torch.where(inferred.to(z.device), shares.square().unsqueeze(-1), shares.unsqueeze(-1))
    through_z = (weights * by_draws * z).sum((0, -1))
    through_decoders = (shares * log_weight).sum(0)
    return bound.detach() + (through_decoders - through_decoders.detach()) + (through_z - through_z.detach())
