"""Normal: real numbers; the decoder gives mean and logarithm of the standard deviation.

References:
    Auto-Encoding Variational Bayes (Kingma, Welling, 2014), arXiv:1312.6114, Appendix C.2
"""

import math

import torch
from torch import Tensor

from mmgen.likelihoods._base import Likelihood, full_precision

__all__ = ["Normal"]

_LEAST, _MOST = -7.0, 7.0


class Normal(Likelihood):
    r"""Likelihood of independent real numbers x ~ N(m, s^2); the decoder gives mean m and log s.

    .. math:: \log p(x|m, s) = \sum_i - \frac{(x_i - m_i)^2}{2 s_i^2} - \log s_i - \frac{1}{2} \log 2 \pi

    A density over all real numbers, not over [0, 1]: of pixels it may be far above 1, and draws may leave [0, 1]. For C
    values along the event's first axis (the channels of an image, the columns of a vector) the decoder gives 2 C: first
    m for each, then log s. That is kept in [-7, 7], since without a least s the density of a value that never changes
    has no bound; so numbers should have a spread of about one.
    """

    parameters_per_value = 2

    def log_prob(self, parameters: Tensor, value: Tensor, event_dims: int = 3) -> Tensor:
        mean, log_sd = (part.flatten(-event_dims) for part in _mean_and_log_sd(parameters, event_dims))
        distance = (value.to(mean.dtype).flatten(-event_dims) - mean) * (-log_sd).exp()
        return -(0.5 * distance.square() + log_sd).sum(-1) - 0.5 * math.log(2 * math.pi) * mean.shape[-1]

    def mean(self, parameters: Tensor) -> Tensor:
        return _mean_and_log_sd(parameters, 3)[0]

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        mean, log_sd = _mean_and_log_sd(parameters, 3)
        noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
        return mean + log_sd.exp() * noise

    def parameters_of_mean(self, mean: Tensor) -> Tensor:
        """Return decoder outputs for which E[x] is ``mean`` and the standard deviation is 1."""
        return torch.cat([mean, torch.zeros_like(mean)])


def _mean_and_log_sd(parameters: Tensor, event_dims: int) -> tuple[Tensor, Tensor]:
    """Split decoder outputs into mean and log sd, which lie side by side on the event's first axis."""
    mean, log_sd = full_precision(parameters).chunk(2, -event_dims)
    return mean, log_sd.clamp(_LEAST, _MOST)
