"""Grids of z to decode: one dimension after the other moved, and the ways between two z.

References:
    beta-VAE (Higgins et al., 2017): traversals of single dimensions
    Sampling Generative Networks (White, 2016), arXiv:1609.04468: spherical interpolation
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from mmgen.generation.encodings import Encodings, along
from mmgen.latent import Axis
from mmgen.models import Model

__all__ = ["interpolation", "steps_of", "traversal", "way_through"]


def steps_of(encodings: Encodings, dimensions: Sequence[Axis], reach: float, steps: int) -> tuple[Tensor, str]:
    """Return the values of dimensions in a traversal, and a caption of them.

    Under N(0, I) from -reach to reach; of a model of several layers, whose lower priors are no N(0, I), so many
    standard deviations of the encodings about their mean.

    Args:
        encodings: What the model makes of the data.
        dimensions: d axes of z.
        reach: Standard deviations to either side.
        steps: S values in equal steps.

    Returns:
        [d, S], and the words.
    """
    values = torch.linspace(-reach, reach, steps).expand(len(dimensions), steps)
    if encodings.log_sd is not None:
        return values, f"from {-reach:g} to {reach:g} standard deviations of p(z)"
    mean = along(encodings.mean, dimensions)
    spread = mean.std(0, correction=min(1, len(mean) - 1))[:, None]  # a single example has none
    caption = f"from {-reach:g} to {reach:g} standard deviations of the encodings about their mean"
    return mean.mean(0)[:, None] + spread * values, caption


def traversal(z: Tensor, dimensions: Sequence[Axis], values: Tensor) -> Tensor:
    """Return z of examples with one dimension at a time set to each of some values.

    Args:
        z: [n, D].
        dimensions: d axes of z; all places of a channel are set together.
        values: What each takes: [S] for all, or [d, S].

    Returns:
        [n, d, S, D].

    Example:
        >>> traversal(torch.zeros(1, 2), [1], torch.tensor([-1.0, 1.0])).tolist()
        [[[[0.0, -1.0], [0.0, 1.0]]]]
    """
    each = values.expand(len(dimensions), values.shape[-1]).to(z)
    grid = z[:, None, None, :].repeat(1, len(dimensions), values.shape[-1], 1)
    for place, dimension in enumerate(dimensions):
        if isinstance(dimension, int):
            grid[:, place, :, dimension] = each[place]
        else:
            grid[:, place, :, list(dimension)] = each[place][:, None]
    return grid


def interpolation(start: Tensor, end: Tensor, steps: int, spherical: bool = True) -> Tensor:
    """Return z on the way from one to another, both ends included.

    Spherical: the direction turns evenly by the shortest arc while the length changes evenly, so that z of a Gaussian
    prior of many dimensions stay as long as its draws are; the middle of a straight line is shorter than nearly all
    of them. Where the ends have no angle or point in opposite directions, and so no shortest arc, the way is straight.

    Args:
        start: [..., D].
        end: [..., D].
        steps: S, at least 2.
        spherical: By the arc, else straight.

    Returns:
        [S, ..., D].

    Example:
        >>> round(interpolation(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), 3)[1].norm().item(), 4)
        1.0
    """
    shares = torch.linspace(0, 1, steps, dtype=start.dtype, device=start.device).reshape(-1, *[1] * start.dim())
    straight = (1 - shares) * start + shares * end
    if not spherical:
        return straight
    lengths = start.norm(dim=-1, keepdim=True), end.norm(dim=-1, keepdim=True)
    least = torch.finfo(start.dtype).tiny
    one, other = start / lengths[0].clamp_min(least), end / lengths[1].clamp_min(least)
    angle = (one * other).sum(-1, keepdim=True).clamp(-1, 1).acos()
    sine = angle.sin()
    turned = (((1 - shares) * angle).sin() * one + (shares * angle).sin() * other) / sine.clamp_min(1e-12)
    arc = turned * ((1 - shares) * lengths[0] + shares * lengths[1])
    return torch.where(sine > 1e-4, arc, straight)


def way_through(model: Model, start: Tensor, end: Tensor, steps: int, spherical: bool = True) -> Tensor:
    """Return an :func:`interpolation` of z [S, ..., D], in which labels that are part of z switch halfway."""
    if not model.discrete_layers:
        return interpolation(start, end, steps, spherical)
    shares = torch.linspace(0, 1, steps, dtype=start.dtype, device=start.device).reshape(-1, *[1] * start.dim())
    sizes, parts = list(model.latent.layers.values()), []
    for name, one, other in zip(model.latent.layers, start.split(sizes, -1), end.split(sizes, -1), strict=True):
        discrete = name in model.discrete_layers
        parts.append(torch.where(shares > 0.5, other, one) if discrete else interpolation(one, other, steps, spherical))
    return torch.cat(parts, -1)
