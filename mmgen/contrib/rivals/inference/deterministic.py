"""Deterministic encoders: a modality's encoding is a point, with a standard deviation of a thousandth.

References:
    Multi-modal Latent Diffusion (Bounoua, Franzese, Michiardi, 2024), arXiv:2306.04445, Section 3
"""

import math
from typing import ClassVar

import torch
from torch import Tensor

from mmgen.inference import ExpertInference
from mmgen.latent.gaussian import DiagonalGaussian

__all__ = ["Deterministic"]


class Deterministic(ExpertInference):
    r"""Inference by deterministic encoders; a layer of z that several of them encode is the mean of their encodings.

    .. math:: q(z | X) = N\Big(\frac{1}{|X|} \sum_{x_i \in X} e_i(x_i), \; \frac{e^{-14}}{|X|} I\Big)

    Attributes with a network each have an encoder each. The divergence from p(z) is large whatever the encodings are,
    since their standard deviation is fixed: train with ``beta`` 0.
    """

    prior: ClassVar[bool] = False

    def natural_parameters(self, expert: DiagonalGaussian) -> tuple[Tensor, Tensor]:
        precision = torch.full_like(expert.mean, math.exp(14))
        return precision, precision * expert.mean
