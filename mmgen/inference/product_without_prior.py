"""Product of experts without p(z): of a single modality it is that modality's encoder itself.

References:
    Multi-View Representation Learning via Total Correlation Objective (Hwang et al., 2021), Section 3, MVTCAE
    Generalized Multimodal ELBO (Sutter, Daunhawer, Vogt, 2021), arXiv:2105.02470, Eq. 4
"""

from typing import ClassVar

from mmgen.inference._base import ExpertInference

__all__ = ["ProductWithoutPrior"]


class ProductWithoutPrior(ExpertInference):
    r"""Inference by a product of Gaussian experts alone; p(z) where there is none.

    .. math:: q(z | X) \propto \prod_{x_i \in X} q(z | x_i), \quad V^{-1} = \sum_i V_i^{-1}, \quad
              \mu = V \sum_i V_i^{-1} \mu_i
    """

    prior: ClassVar[bool] = False
