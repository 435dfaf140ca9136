"""Precision: the share of drawn pictures that lie near real pictures of the same description.

References:
    Improved Precision and Recall Metric for Assessing Generative Models (Kynkäänniemi, Karras, Laine, Lehtinen, Aila,
    2019), arXiv:1904.06991
"""

from mmgen.metrics._overlap import Overlap

__all__ = ["Precision"]


class Precision(Overlap):
    r"""Percentage of drawn pictures that resemble a real one, by neighbourhoods in the classifier's features.

    .. math:: \frac{1}{n} \sum_i I(\exists j: \|d_i - r_j\| \le \|r_j - NN_k(r_j)\|) \qquad (k = 3)
    """

    of_real = False
