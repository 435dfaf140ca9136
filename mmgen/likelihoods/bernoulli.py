"""Bernoulli: binary pixels; the decoder gives logits."""

import torch
from torch import Tensor
from torch.nn import functional

from mmgen.likelihoods._base import Likelihood, full_precision

__all__ = ["Bernoulli"]


class Bernoulli(Likelihood):
    r"""Likelihood of independent binary values, such as pixels; the decoder gives logits l.

    .. math:: \log p(x|l) = \sum_i x_i l_i - \log(1 + e^{l_i})

    Grey values in [0, 1] are accepted as expected values of the sufficient statistic (the usual cross-entropy); then
    the result is not a normalised log-likelihood, which is why MNIST-A is binarised once when it is made.
    """

    def log_prob(self, parameters: Tensor, value: Tensor, event_dims: int = 3) -> Tensor:
        logits = full_precision(parameters)
        x = value.to(logits.dtype)
        if logits.requires_grad:
            # One fused kernel with a cheap backward pass.
            element = -functional.binary_cross_entropy_with_logits(logits, x.expand_as(logits), reduction="none")
            return element.flatten(-event_dims).sum(-1)
        # Without a gradient (importance sampling) the linear term is an inner product, and x is never broadcast.
        flat = logits.flatten(-event_dims)
        with torch.autocast(flat.device.type, enabled=False):  # which would round the sum over all pixels to eight bits
            linear = torch.einsum("...e,...e->...", flat, x.flatten(-event_dims))
        return linear - functional.softplus(flat).sum(-1)

    def mean(self, parameters: Tensor) -> Tensor:
        return full_precision(parameters).sigmoid()

    def parameters_of_mean(self, mean: Tensor) -> Tensor:
        """Return the logits of means clamped to [0.001, 0.999] (Burda et al., 2016, published code)."""
        return mean.clamp(0.001, 0.999).logit()

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        probability = self.mean(parameters)
        uniform = torch.rand(probability.shape, generator=generator, device=probability.device, dtype=probability.dtype)
        return (uniform < probability).to(probability.dtype)
