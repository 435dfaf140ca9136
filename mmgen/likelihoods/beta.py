"""Beta: grey and colour values in (0, 1); the decoder gives the logit of the mean.

References:
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Section 5.1.2
"""

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mmgen.likelihoods._base import Likelihood, full_precision

__all__ = ["Beta"]

_INSIDE = 0.5 / 255
_NODES, _REACH = 2048, 20.0
_CHUNK = 32_768  # pixels computed together on a CPU


class Beta(Likelihood):
    r"""Likelihood of independent values x ~ Beta(c a, c (1 - a)) of mean a = sigmoid(l), l the decoder output.

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
        logits = full_precision(parameters).flatten(-event_dims)
        x = value.to(logits.dtype).flatten(-event_dims)
        shape = torch.broadcast_shapes(logits.shape, x.shape)
        # [L, N, E] and [N, E]: latents share an image over L.
        logits, x = logits.expand(shape), x.expand(shape[-x.dim() :])
        flat, images = logits.reshape(-1, math.prod(x.shape[:-1]), shape[-1]), x.reshape(-1, shape[-1])
        if logits.requires_grad and torch.is_grad_enabled():
            result: Tensor = _LogProb.apply(flat, images, self.concentration)
        else:
            result = _log_prob(flat, images, self.concentration, None)
        return result.reshape(shape[:-1])

    def mean(self, parameters: Tensor) -> Tensor:
        return full_precision(parameters).sigmoid()

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        logits = full_precision(parameters)
        one, other = (
            torch._standard_gamma(self.concentration * side.sigmoid(), generator=generator)
            for side in (logits, -logits)
        )
        return one / (one + other)


class _LogProb(torch.autograd.Function):
    """Function :func:`_log_prob` with its gradient, computed in the same pass."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, x: Tensor, concentration: float) -> Tensor:
        derivative = torch.empty_like(logits)
        value = _log_prob(logits, x, concentration, derivative)
        ctx.save_for_backward(derivative)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (derivative,) = ctx.saved_tensors
        return gradient.unsqueeze(-1) * derivative, None, None


def _log_prob(logits: Tensor, x: Tensor, concentration: float, derivative: Tensor | None) -> Tensor:
    """Return log p [L, N] of pixels [N, E] given logits [L, N, E]; write its derivative by logits to ``derivative``."""
    # A few images at a time fit into the cache of a CPU, which halves the time.
    count, size = x.shape
    step = max(1, _CHUNK // size) if x.device.type == "cpu" else count
    result = logits.new_empty(logits.shape[:2])
    for start in range(0, count, step):
        part = slice(start, start + step)
        inside = x[part].clamp(_INSIDE, 1 - _INSIDE)
        log_x, log_rest = inside.log(), (1 - inside).log()
        # (ca - 1) log x + (c(1-a) - 1) log(1-x) = c a log(x/(1-x)) + (c - 1) log(1-x) - log x
        constant = torch.sub((concentration - 1) * log_rest, log_x).sum(-1)
        slope = torch.sub(log_x, log_rest).mul_(concentration)
        for row in range(len(logits)):
            chunk = logits[row, part]
            mean = chunk.sigmoid()
            if derivative is None:
                normaliser = _log_normaliser(chunk, concentration)
            else:
                normaliser, by_logit = _normaliser_and_derivative(chunk, concentration)
                torch.addcmul(by_logit, torch.sub(mean, mean.square()), slope, out=derivative[row, part])
            torch.add(constant, normaliser.addcmul_(mean, slope).sum(-1), out=result[row, part])
    return result


def _exact_log_normaliser(logits: Tensor, concentration: float) -> Tensor:
    """Return log Gamma(c) - log Gamma(c a) - log Gamma(c (1-a)), finite for any logit."""
    # Gamma(1 + s) = s Gamma(s): the logarithm of a parameter close to 0 comes from logsigmoid.
    total = torch.as_tensor(concentration, dtype=logits.dtype, device=logits.device)
    result = total.lgamma() + 2 * total.log()
    for side in (logits, -logits):
        result = result + torch.nn.functional.logsigmoid(side) - (1 + total * side.sigmoid()).lgamma()
    return result


@cache
def _normaliser_table(concentration: float, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Tabulate ``_exact_log_normaliser`` at nodes: value, slope, half the curvature; beyond them it is linear."""
    # The first caller may be in inference mode, but the table is made by differentiation and outlives the call.
    with torch.inference_mode(False), torch.enable_grad():
        nodes = torch.linspace(-_REACH, _REACH, _NODES + 1, dtype=torch.float64).requires_grad_()
        value = _exact_log_normaliser(nodes, concentration)
        (slope,) = torch.autograd.grad(value.sum(), nodes, create_graph=True)
        (curvature,) = torch.autograd.grad(slope.sum(), nodes)
        curvature[[0, -1]] = 0.0
        a, b, c = (column.detach().float().to(device) for column in (value, slope, curvature / 2))
    return a, b, c


def _lookup_nearest_node(logits: Tensor, concentration: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return value, slope and half curvature at the node nearest to each logit, and the distance to that node."""
    per_unit = _NODES / (2 * _REACH)
    node = (logits * per_unit).add_(_NODES / 2 + 0.5).clamp_(0, _NODES).int()
    offset = torch.sub(logits, node, alpha=1 / per_unit).add_(_REACH)
    a, b, c = (
        column.index_select(0, node.flatten()).view_as(logits)
        for column in _normaliser_table(concentration, logits.device)
    )
    return a, b, c, offset


def _log_normaliser(logits: Tensor, concentration: float) -> Tensor:
    """Return the log-normaliser elementwise, without a gradient."""
    if logits.dtype == torch.float64:
        return _exact_log_normaliser(logits, concentration)
    a, b, c, offset = _lookup_nearest_node(logits, concentration)
    return a.addcmul_(b.addcmul_(c, offset), offset)


def _normaliser_and_derivative(logits: Tensor, concentration: float) -> tuple[Tensor, Tensor]:
    """Return elementwise log-normaliser and its derivative with respect to the logit."""
    if logits.dtype == torch.float64:
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            value = _exact_log_normaliser(leaf, concentration)
            (derivative,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach(), derivative
    a, b, c, offset = _lookup_nearest_node(logits, concentration)
    step = c.mul_(offset)
    value = a.addcmul_(torch.add(b, step), offset)
    return value, b.add_(step, alpha=2.0)
