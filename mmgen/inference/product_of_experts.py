"""Product of experts: one Gaussian per modality (or per attribute), times p(z), for any subset.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), Eq. 4, arXiv:1802.05335
"""

from mmgen.inference._base import ExpertInference

__all__ = ["ProductOfExperts"]


class ProductOfExperts(ExpertInference):
    r"""Inference by a product of Gaussian experts and p(z).

    .. math:: q(z | X) \propto p(z) \prod_{x_i \in X} \tilde q(z | x_i), \quad
              V^{-1} = I + \sum_i V_i^{-1}, \quad \mu = V \sum_i V_i^{-1} \mu_i \qquad \text{(WG Eq. 4)}
    """
