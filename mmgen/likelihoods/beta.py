"""Beta: grey and colour values in (0, 1); the decoder gives the logit of the mean.

References:
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Section 5.1.2, arXiv:1808.09111
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mmgen.likelihoods._base import Likelihood, full_precision

__all__ = ["Beta"]

_INSIDE = 0.5 / 255
_NODES, _REACH = 2048, 20.0


class Beta(Likelihood):
    r"""Independent values x ~ Beta(c a, c (1 - a)) of mean a = sigmoid(l), l the decoder output.

    .. math:: \log p(x|l) = \log \frac{\Gamma(c)}{\Gamma(ca) \, \Gamma(c(1-a))}
              + (ca - 1) \log x + (c(1-a) - 1) \log(1 - x)

    The density is 0 or infinite at exactly 0 and 1. **Pixels are moved inside once, here**: values below 0.5/255 count
    as 0.5/255 and values above 1 - 0.5/255 as that. So only the darkest and the brightest of 256 levels move, by half a
    level, and wherever log p(x) is reported it is that of these values.

    Given the concentration c the first term depends on l alone and is even in it, so it is looked up rather than
    computed: log-gamma and its derivative would take longer than the networks (10 and 25 times the other terms on a
    CPU). The table's error is below fp32 rounding; in fp64 nothing is looked up.

    Args:
        concentration: c, the sum of both parameters of the distribution (CK: 100).
    """

    def __init__(self, concentration: float = 100.0) -> None:
        self.concentration = concentration

    def log_prob(self, parameters: Tensor, value: Tensor, event_dims: int = 3) -> Tensor:
        logits = full_precision(parameters)
        x = value.to(logits.dtype).clamp(_INSIDE, 1 - _INSIDE)
        log_x, log_rest = x.log(), (1 - x).log()
        # (ca - 1) log x + (c(1-a) - 1) log(1-x) = c a log(x/(1-x)) + (c - 1) log(1-x) - log x
        constant = ((self.concentration - 1) * log_rest - log_x).flatten(-event_dims).sum(-1)
        slope = (log_x - log_rest).flatten(-event_dims)
        flat = logits.flatten(-event_dims)
        if flat.requires_grad and torch.is_grad_enabled():
            varying = _Varying.apply(flat, slope, self.concentration)
        else:
            varying = self.concentration * torch.einsum("...e,...e->...", flat.sigmoid(), slope)
            varying = varying + _log_normaliser(flat, self.concentration).sum(-1)
        return varying + constant

    def mean(self, parameters: Tensor) -> Tensor:
        return full_precision(parameters).sigmoid()

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        logits = full_precision(parameters)
        one, other = (
            torch._standard_gamma(self.concentration * side.sigmoid(), generator=generator)
            for side in (logits, -logits)
        )
        return one / (one + other)


class _Varying(torch.autograd.Function):
    """sum_e [log-normaliser(l) + c sigmoid(l) slope] over the last axis, with its gradient made on the way."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, slope: Tensor, concentration: float) -> Tensor:
        mean = logits.sigmoid()
        normaliser, derivative = _normaliser_and_derivative(logits, concentration)
        value = torch.addcmul(normaliser, mean, slope, value=concentration).sum(-1)
        ctx.save_for_backward(derivative.addcmul_(mean.sub_(mean.square()), slope, value=concentration))
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (derivative,) = ctx.saved_tensors
        return gradient.unsqueeze(-1) * derivative, None, None


def _exact(logits: Tensor, concentration: float) -> Tensor:
    """log Gamma(c) - log Gamma(c a) - log Gamma(c (1-a)), finite for any logit."""
    # Gamma(1 + s) = s Gamma(s): the logarithm of a parameter close to 0 comes from logsigmoid.
    total = torch.as_tensor(concentration, dtype=logits.dtype, device=logits.device)
    result = total.lgamma() + 2 * total.log()
    for side in (logits, -logits):
        result = result + torch.nn.functional.logsigmoid(side) - (1 + total * side.sigmoid()).lgamma()
    return result


@cache
def _table(concentration: float, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Value, slope and half the curvature of ``_exact`` at the nodes of [-reach, reach]; beyond it is a line."""
    nodes = torch.linspace(-_REACH, _REACH, _NODES + 1, dtype=torch.float64).requires_grad_()
    with torch.enable_grad():
        value = _exact(nodes, concentration)
        (slope,) = torch.autograd.grad(value.sum(), nodes, create_graph=True)
        (curvature,) = torch.autograd.grad(slope.sum(), nodes)
    curvature[[0, -1]] = 0.0
    a, b, c = (column.detach().float().to(device) for column in (value, slope, curvature / 2))
    return a, b, c


def _lookup(logits: Tensor, concentration: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The table's three columns at the nearest node, and the distance to it."""
    per_unit = _NODES / (2 * _REACH)
    node = (logits * per_unit).add_(_NODES / 2 + 0.5).clamp_(0, _NODES).int()
    offset = torch.sub(logits, node, alpha=1 / per_unit).add_(_REACH)
    a, b, c = (
        column.index_select(0, node.flatten()).view_as(logits) for column in _table(concentration, logits.device)
    )
    return a, b, c, offset


def _log_normaliser(logits: Tensor, concentration: float) -> Tensor:
    """Elementwise, without a gradient."""
    if logits.dtype == torch.float64:
        return _exact(logits, concentration)
    a, b, c, offset = _lookup(logits, concentration)
    return a.addcmul_(b.addcmul_(c, offset), offset)


def _normaliser_and_derivative(logits: Tensor, concentration: float) -> tuple[Tensor, Tensor]:
    """Elementwise log-normaliser and its derivative with respect to the logit."""
    if logits.dtype == torch.float64:
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            value = _exact(leaf, concentration)
            (derivative,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach(), derivative
    a, b, c, offset = _lookup(logits, concentration)
    step = c.mul_(offset)
    value = a.addcmul_(torch.add(b, step), offset)
    return value, b.add_(step, alpha=2.0)
