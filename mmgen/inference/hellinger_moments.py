"""Hellinger moments: the Gaussian with the mean and the variances of the experts' pool by Hellinger's distance.

References:
    Hellinger Multimodal Variational Autoencoders (Vo, Valera, 2026), arXiv:2601.06572, HELVAE
"""

import torch
from torch import Tensor

from mmgen.inference._base import CombinedInference
from mmgen.latent.gaussian import DiagonalGaussian

__all__ = ["HellingerMoments"]


class HellingerMoments(CombinedInference):
    r"""Inference by the Gaussian with the moments of the encoders' pool of alpha = 1/2; p(z) where there is none.

    .. math:: \bar q(z) \propto \Big(\sum_{x_i \in X} \sqrt{q(z | x_i)}\Big)^2
              = \sum_{i, j} \sqrt{q(z | x_i) \, q(z | x_j)}

    Each term is a Gaussian, of the mean of both precisions, times the Bhattacharyya coefficient of the two, so that the
    moments are exact.
    """

    def combine(self, experts: DiagonalGaussian, present: Tensor, membership: Tensor) -> DiagonalGaussian:
        present = present.expand_as(experts.mean)
        precision = experts.precision.masked_fill(~present, 0.0)
        weighted = precision * experts.mean
        both = 0.5 * (precision.unsqueeze(0) + precision.unsqueeze(1))  # [E, E, B, D]
        covered = both > 0
        both = torch.where(covered, both, 1.0)
        mean = 0.5 * (weighted.unsqueeze(0) + weighted.unsqueeze(1)) / both
        # log of the Bhattacharyya coefficient, over the dimensions that both cover
        distance = (experts.mean.unsqueeze(0) - experts.mean.unsqueeze(1)).square()
        variance = 0.5 * (experts.variance.unsqueeze(0) + experts.variance.unsqueeze(1))
        spread = 0.5 * (experts.log_sd.unsqueeze(0) + experts.log_sd.unsqueeze(1)) - 0.5 * variance.log()
        overlap = (spread - 0.125 * distance / variance).masked_fill(~(present.unsqueeze(0) & present.unsqueeze(1)), 0)
        there = present.any(-1, keepdim=True)  # an expert that is missing in an example is in no pair
        covered = covered & there.unsqueeze(0) & there.unsqueeze(1)
        held = (membership.unsqueeze(1) * membership.unsqueeze(2)).bool()[..., None, None] & covered  # [S, E, E, B, D]
        weights = overlap.sum(-1, keepdim=True).masked_fill(~held, -torch.inf).flatten(1, 2)
        some = held.flatten(1, 2).any(1)  # [S, B, D]
        weights = torch.where(some.unsqueeze(1), weights, 0.0).softmax(1)
        pooled = (weights * mean.flatten(0, 1)).sum(1)
        second = (weights * (1 / both + mean.square()).flatten(0, 1)).sum(1)
        variance = torch.where(some, second - pooled.square(), 1.0)
        return DiagonalGaussian(pooled * some, 0.5 * variance.clamp(min=1e-12).log())
