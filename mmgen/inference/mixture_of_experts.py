"""Mixture of experts: q(z | X) is the mean of the posteriors of single modalities.

References:
    Variational Mixture-of-Experts Autoencoders for Multi-Modal Deep Generative Models (Shi, Siddharth, Paige, Torr,
    2019), arXiv:1911.03393, Section 3.1
"""

from typing import ClassVar

from mmgen.inference._base import ExpertInference, Inputs

__all__ = ["MixtureOfExperts"]


class MixtureOfExperts(ExpertInference):
    r"""Inference by a mixture of the modalities' encoders in equal parts, without p(z).

    .. math:: q(z | X) = \frac{1}{|X|} \sum_{x_i \in X} q(z | x_i)

    Attributes with a network each are one modality: its encoder is the product of those that are known.
    """

    prior: ClassVar[bool] = False
    mixes: ClassVar[bool] = True

    @classmethod
    def mixed_subsets(cls, inputs: Inputs) -> list[Inputs]:
        return [(name,) for name in inputs]
