"""Laplace: grey and colour values with a fixed scale; the decoder gives the logit of the mean.

References:
    Variational Mixture-of-Experts Autoencoders for Multi-Modal Deep Generative Models (Shi, Siddharth, Paige, Torr,
    2019), arXiv:1911.03393
"""

import math

import torch
from torch import Tensor

from mmgen.likelihoods._base import Likelihood, full_precision

__all__ = ["Laplace"]


class Laplace(Likelihood):
    r"""Likelihood of independent values x ~ Laplace(a, s) of mean a = sigmoid(l), l the decoder output.

    .. math:: \log p(x|l) = \sum_i - \frac{|x_i - a_i|}{s} - \log 2 s

    **Normalised over all real numbers**, not over [0, 1], as in MMVAE and the models after it: the share
    exp(-a/s) / 2 + exp(-(1-a)/s) / 2 of the probability lies outside of what a pixel can be. With the default scale it
    is 51 % at a = 1/2, where it is least, and up to 63 % at a = 0 and a = 1. Densities of pixels are therefore too low,
    by 0.72 to 1.00 nats a value, and comparable with each other alone. Draws may leave [0, 1]; pictures of them are
    clipped.

    Args:
        scale: s, the mean distance between a pixel and its mean (MMVAE: 0.75).
    """

    def __init__(self, scale: float = 0.75) -> None:
        self.scale = scale

    def log_prob(self, parameters: Tensor, value: Tensor, event_dims: int = 3) -> Tensor:
        mean = self.mean(parameters).flatten(-event_dims)
        distance = (value.to(mean.dtype).flatten(-event_dims) - mean).abs().sum(-1)
        return -distance / self.scale - mean.shape[-1] * math.log(2 * self.scale)

    def mean(self, parameters: Tensor) -> Tensor:
        return full_precision(parameters).sigmoid()

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        mean = self.mean(parameters)
        # The difference of two exponential variables is a Laplace variable.
        one, other = (torch.empty_like(mean).exponential_(generator=generator) for _ in range(2))
        return mean + self.scale * (one - other)
