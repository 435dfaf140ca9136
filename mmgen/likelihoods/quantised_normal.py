"""Quantised normal: a discrete distribution over 256 levels, each with a Gaussian's mass around it.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), Appendix A.4
    A Note on the Evaluation of Generative Models (Theis, van den Oord, Bethge, 2016), Section 3.1, arXiv:1511.01844
"""

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from mmgen.likelihoods._base import Likelihood, full_precision

__all__ = ["QuantisedNormal"]

_LEVELS = 255  # the highest
_HALF = 0.5 / _LEVELS
_CHUNK = 32_768  # pixels computed together on a CPU
_NODES = 4


class QuantisedNormal(Likelihood):
    r"""Likelihood of independent levels x = k / 255, k = 0 .. 255: the mass of N(m, s^2) around each level.

    .. math:: p(k|m, s) = \Phi\Big(\frac{k + 1/2 - 255 m}{255 s}\Big) - \Phi\Big(\frac{k - 1/2 - 255 m}{255 s}\Big)

    with everything below 1/2 counted as level 0 and everything above 254 1/2 as 255. So **the probabilities of the 256
    levels add up to 1**, and log p(x) is at most 0 and comparable with that of any discrete model. VE add uniform noise
    of a level's width to pixels and take the Gaussian's density; that is an estimate of a lower bound of this number
    (Theis et al.), given in another unit of x and without the tails.

    For an image of C channels the decoder gives 2 C: first u, then v for each, m = 1/2 + u and
    s = 1/510 + softplus(v) / 4. Half a level is the smallest standard deviation: less would add nothing that levels can
    show, and a pixel that never changes would drive it to 0. Values between levels count as the nearest.
    """

    parameters_per_value = 2

    def log_prob(self, parameters: Tensor, value: Tensor, event_dims: int = 3) -> Tensor:
        mean, sd = (part.flatten(-event_dims) for part in _mean_and_sd(parameters, event_dims))
        level = (value.to(mean.dtype).flatten(-event_dims) * _LEVELS).round()
        shape = torch.broadcast_shapes(mean.shape, level.shape)
        # [L, N, E] and [N, E]: latents share an image over L.
        level = level.expand(shape[-level.dim() :])
        mean, sd = (part.expand(shape).reshape(-1, level[..., 0].numel(), shape[-1]) for part in (mean, sd))
        level = level.reshape(-1, shape[-1])
        if mean.requires_grad and torch.is_grad_enabled():
            result: Tensor = _LogProb.apply(mean, sd, level)
        else:
            result = _log_prob(mean, sd, level, None)
        return result.reshape(shape[:-1])

    def mean(self, parameters: Tensor) -> Tensor:
        r"""Return E[x] as an integral that approximates the sum over levels of P(x >= level).

        The error is at most a twentieth of a level, at the smallest standard deviation, and far smaller elsewhere.
        """
        mean, sd = _mean_and_sd(parameters, 3)
        total = torch.zeros_like(mean)
        for edge, sign in ((0.0, 1), (1.0, -1)):
            y = (mean - edge) / sd
            total = total + sign * (y * torch.special.ndtr(y) + (-0.5 * y.square()).exp() / math.sqrt(2 * math.pi))
        return (sd * total).clamp(0.0, 1.0)

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        mean, sd = _mean_and_sd(parameters, 3)
        noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
        return ((mean + sd * noise) * _LEVELS).round().clamp(0, _LEVELS) / _LEVELS


def _mean_and_sd(parameters: Tensor, event_dims: int) -> tuple[Tensor, Tensor]:
    u, v = full_precision(parameters).chunk(2, -event_dims)
    return u + 0.5, functional.softplus(v) / 4 + _HALF


class _LogProb(torch.autograd.Function):
    """Function :func:`_log_prob` with its gradients, computed in the same pass."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, sd: Tensor, level: Tensor) -> Tensor:
        gradients = (torch.empty_like(mean), torch.empty_like(sd))
        value = _log_prob(mean, sd, level, gradients)
        ctx.save_for_backward(*gradients)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        by_mean, by_sd = ctx.saved_tensors
        return gradient.unsqueeze(-1) * by_mean, gradient.unsqueeze(-1) * by_sd, None


def _log_prob(mean: Tensor, sd: Tensor, level: Tensor, gradients: tuple[Tensor, Tensor] | None) -> Tensor:
    """Return log p [L, N] of levels [N, E] given means and standard deviations [L, N, E]; write gradients if given."""
    count, size = level.shape
    step = max(1, _CHUNK // size) if level.device.type == "cpu" else count
    result = mean.new_empty(mean.shape[:2])
    for start in range(0, count, step):
        part = slice(start, start + step)
        for row in range(len(mean)):
            log_p, by_mean, by_sd = _pixel_log_prob(
                mean[row, part], sd[row, part], level[part], gradients is not None, level.device.type != "cpu"
            )
            torch.sum(log_p, -1, out=result[row, part])
            if gradients is not None:
                gradients[0][row, part], gradients[1][row, part] = by_mean, by_sd
    return result


def _pixel_log_prob(
    mean: Tensor, sd: Tensor, level: Tensor, differentiate: bool, whole: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log p(level) of each pixel, and if ``differentiate`` its derivatives by mean and standard deviation.

    With ``whole`` every pixel is computed in both ways: to choose some would wait for a GPU.
    """
    # With a and b the ends of the level in standard deviations, all of them follow from log p and from the density of
    # the standard normal at the ends divided by p: d log p / d mean = (r_a - r_b) / s and d log p / ds = (a r_a - b
    # r_b) / s.
    m, h = (level / _LEVELS - mean) / sd, _HALF / sd  # middle and half width; h <= 1
    steep = (m * h).abs() > 1
    log_p, ratio = _log_prob_of_flat_levels(m, h)
    # r_a - r_b and a r_a - b r_b, without subtracting what is nearly equal.
    tilt = (m * h).clamp(-1, 1)
    difference, weighted = (
        (2 * ratio * tilt.sinh(), 2 * ratio * (m * tilt.sinh() - h * tilt.cosh())) if differentiate else (m, m)
    )
    ends = (level == 0) | (level == _LEVELS)
    # The nearer end, on the side of positive a, for what mirrors to it.
    side = torch.where(ends, (level == 0).to(m.dtype) * -2 + 1, m.sign())
    rest = steep | ends
    if whole:
        values = _tails(m, h, ends, side)
        log_p, difference, weighted = (
            torch.where(rest, *pair) for pair in zip(values, (log_p, difference, weighted), strict=True)
        )
    elif rest.any():
        values = _tails(m[rest], h[rest], ends[rest], side[rest])
        log_p[rest] = values[0]
        if differentiate:
            difference[rest], weighted[rest] = values[1:]
    return log_p, (difference / sd if differentiate else m), (weighted / sd if differentiate else m)


def _tails(m: Tensor, h: Tensor, ends: Tensor, side: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return log p of levels at an end or of steep density, r_a - r_b and a r_a - b r_b."""
    m = m * side
    log_p, at_a, at_b = _log_prob_of_tails(m - h, m + h, ends)
    return log_p, side * (at_a - at_b), (m - h) * at_a - (m + h) * at_b


def _log_prob_of_flat_levels(m: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return log p of levels over which the density changes little, |m h| <= 1, and r = exp(-h^2 / 2) density(m) / p.

    .. math:: p = 2 h \varphi(m) \int_0^1 \cosh(m h t) e^{-h^2 t^2 / 2} dt

    by Gauss-Legendre quadrature; four nodes are exact to 1e-11 for h <= 1.
    """
    tilt, square = (m * h).abs().clamp(max=1.0), h.square()
    integral = torch.zeros_like(m)
    for node, weight in _quadrature_rule():
        integral += weight * (tilt * node).cosh() * (square * (-0.5 * node**2)).exp()
    log_p = torch.log(2 * h * integral) - 0.5 * m.square() - 0.5 * math.log(2 * math.pi)
    return log_p, (-0.5 * square).exp() / (2 * h * integral)


@cache
def _quadrature_rule() -> tuple[tuple[float, float], ...]:
    """Return positive nodes of the Gauss-Legendre rule on [-1, 1], with weights that add up to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(2 * _NODES)
    return tuple((float(t), float(w)) for t, w in zip(nodes, weights, strict=True) if t > 0)


def _log_prob_of_tails(a: Tensor, b: Tensor, one_ended: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return log P(a <= x <= b), a > 0, or log P(x >= a) where ``one_ended``, and the ratios r_a and r_b.

    .. math:: p = \varphi(a) \sqrt{\pi / 2} \, [e(a) - e^{(a^2 - b^2) / 2} e(b)],
              \quad e(x) = \mathrm{erfcx}(x / \sqrt 2)

    does not underflow, and the second term is at most e^-2 of the first.
    """
    root, log_root = math.sqrt(0.5), 0.5 * math.log(2 * math.pi)
    fall = torch.where(one_ended, 0.0, ((a - b) * (a + b) / 2).exp())
    positive = a.clamp(min=0.0)
    mass = math.sqrt(math.pi / 2) * (
        torch.special.erfcx(positive * root) - fall * torch.special.erfcx(b.clamp(min=0.0) * root)
    )
    inside = torch.log1p(-0.5 * torch.special.erfc(-a.clamp(max=0.0) * root))  # one end, and the mean beyond it
    log_p = torch.where(a > 0, mass.log() - 0.5 * a.square() - log_root, inside)
    at_a = torch.where(a > 0, 1 / mass, (-0.5 * a.square() - log_root - inside).exp())
    return log_p, at_a, fall * at_a
