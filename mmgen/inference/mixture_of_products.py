"""Mixture of products of experts: q(z | X) is the mean of the products over all subsets of X.

References:
    Generalized Multimodal ELBO (Sutter, Daunhawer, Vogt, 2021), arXiv:2105.02470, Eq. 4 and 5
"""

from typing import ClassVar

from mmgen.inference._base import ExpertInference, Inputs, every_subset

__all__ = ["MixtureOfProducts"]


class MixtureOfProducts(ExpertInference):
    r"""Inference by a mixture, in equal parts, of the products of experts over all subsets of the modalities.

    .. math:: q(z | X) = \frac{1}{2^{|X|} - 1} \sum_{\emptyset \ne S \subseteq X} q_S(z), \quad
              q_S(z) \propto \prod_{x_i \in S} q(z | x_i)

    As in the paper no product holds p(z); its published code multiplies the product of all modalities, alone, by p(z).
    """

    prior: ClassVar[bool] = False
    mixes: ClassVar[bool] = True

    @classmethod
    def mixed_subsets(cls, inputs: Inputs) -> list[Inputs]:
        return every_subset(inputs)
