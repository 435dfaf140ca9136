"""Wasserstein barycentre of experts: q(z | X) is the Gaussian nearest to the encoders of X by optimal transport.

References:
    Multimodal Variational Autoencoder: A Barycentric View (Qiu, Zhu, Yin, Zhang, 2025), arXiv:2412.20487
    Barycenters in the Wasserstein Space (Agueh, Carlier, 2011)
"""

import torch
from torch import Tensor

from mmgen.inference._base import CombinedInference
from mmgen.latent.gaussian import DiagonalGaussian

__all__ = ["WassersteinBarycentre"]


class WassersteinBarycentre(CombinedInference):
    r"""Inference by the 2-Wasserstein barycentre of the encoders in equal parts: means and standard deviations of it
    are theirs averaged, since diagonal Gaussians commute; p(z) where there is none.

    .. math:: q(z | X) = \arg\min_q \sum_{x_i \in X} W_2^2(q, q(z | x_i)), \quad
              \mu = \frac{1}{|X|} \sum_i \mu_i, \quad \sigma = \frac{1}{|X|} \sum_i \sigma_i
    """

    def combine(self, experts: DiagonalGaussian, present: Tensor, membership: Tensor) -> DiagonalGaussian:
        count = torch.einsum("se,ebd->sbd", membership, present.expand_as(experts.mean).to(experts.mean.dtype))
        mean, sd = (
            torch.einsum("se,ebd->sbd", membership, each.masked_fill(~present, 0.0)) / count.clamp(min=1)
            for each in (experts.mean, experts.sd)
        )
        return DiagonalGaussian(mean, torch.where(count > 0, sd, 1.0).log())
