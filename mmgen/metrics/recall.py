"""Recall: the share of real pictures of a description that lie near drawn ones.

References:
    Improved Precision and Recall Metric for Assessing Generative Models (Kynkäänniemi, Karras, Laine, Lehtinen, Aila,
    2019), arXiv:1904.06991
"""

from mmgen.metrics._overlap import Overlap

__all__ = ["Recall"]


class Recall(Overlap):
    r"""Percentage of real pictures that resemble a drawn one, by neighbourhoods in the classifier's features.

    .. math:: \frac{1}{n} \sum_i I(\exists j: \|r_i - d_j\| \le \|d_j - NN_k(d_j)\|) \qquad (k = 3)
    """

    of_real = True
