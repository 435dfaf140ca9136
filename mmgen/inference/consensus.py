"""Consensus of dependent experts: the experts' errors are correlated, so that agreement counts for less.

References:
    Aggregation of Dependent Expert Distributions in Multimodal Variational Autoencoders (Mancisidor, Jenssen, Yu,
    Kampffmeyer, 2025), arXiv:2505.01134, CoDE
"""

from typing import ClassVar

import torch
from torch import Tensor

from mmgen.inference._base import CombinedInference
from mmgen.latent.gaussian import DiagonalGaussian

__all__ = ["Consensus"]


class Consensus(CombinedInference):
    r"""Inference by the consensus of encoders whose errors have the correlation rho, in each dimension.

    .. math:: q(z | X) = N\big((e^T \Sigma^{-1} e)^{-1} e^T \Sigma^{-1} \mu, \; (e^T \Sigma^{-1} e)^{-1}\big), \quad
              \Sigma_{ii} = \sigma_i^2, \; \Sigma_{ij} = \rho \sigma_i \sigma_j

    With rho = 0 it is the product of experts without p(z). The inverse of a matrix of equal correlations has a closed
    form; p(z) where there is no expert. The paper learns weights of subsets besides, which belong to its objective.
    """

    correlation: ClassVar[float] = 0.4
    """rho of all pairs of experts, in [0, 1) (the paper's experiments: 0.4 to 0.6)."""

    def combine(self, experts: DiagonalGaussian, present: Tensor, membership: Tensor) -> DiagonalGaussian:
        def total(each: Tensor) -> Tensor:
            return torch.einsum("se,ebd->sbd", membership, each.expand_as(inverse).masked_fill(~present, 0.0))

        inverse, rho = (-experts.log_sd).exp(), self.correlation
        count = total(torch.ones_like(inverse))
        shared = rho / (1 + (count.clamp(min=1) - 1) * rho)
        precision = (total(inverse.square()) - shared * total(inverse).square()) / (1 - rho)
        weighted = total(inverse.square() * experts.mean) - shared * total(inverse) * total(inverse * experts.mean)
        precision = torch.where(count > 0, precision, 1.0)
        return DiagonalGaussian(weighted / (1 - rho) / precision, -0.5 * precision.log())
