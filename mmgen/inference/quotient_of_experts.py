"""Quotient of experts: a product of single-modality posteriors, divided by the surplus priors (MVAE-Q).

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), Eq. 3, arXiv:1802.05335
"""

import torch
from torch import Tensor

from mmgen.inference._base import ExpertInference
from mmgen.latent.gaussian import DiagonalGaussian

__all__ = ["QuotientOfExperts"]


class QuotientOfExperts(ExpertInference):
    r"""Inference by a product of M posteriors of single modalities, divided by M - 1 priors.

    .. math:: q(z | X) \propto \frac{\prod_{x_i \in X} q(z | x_i)}{p(z)^{|X| - 1}}, \quad
              V^{-1} = \sum_i V_i^{-1} - (|X| - 1) I \qquad \text{(WG Eq. 3)}

    This is a Gaussian only where its precision is positive. WG name the constraint (every expert narrower than the
    prior) and not how they meet it; here an expert's variance is the logistic function of the network's log variance,
    so that it lies in (0, 1) and every quotient is well defined, whatever is missing.
    """

    def natural_parameters(self, expert: DiagonalGaussian) -> tuple[Tensor, Tensor]:
        # 1 / sigmoid(log v) = 1 + 1 / v: what exceeds the prior's precision is that of the unconstrained Gaussian.
        surplus = torch.exp(-2 * expert.log_sd)
        return surplus, (1 + surplus) * expert.mean
