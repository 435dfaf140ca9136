"""Grids of z to decode: traversals, which change one dimension at a time, and interpolations between two z.

References:
    beta-VAE (Higgins et al., 2017): traversals of single dimensions
    Sampling Generative Networks (White, 2016), arXiv:1609.04468: spherical interpolation
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from mmgen.generation.encodings import Encodings, project_onto_axes
from mmgen.latent import Axis
from mmgen.models import Model

__all__ = ["interpolate", "traversal_values", "traverse", "interpolate_with_labels"]


def traversal_values(encodings: Encodings, dimensions: Sequence[Axis], reach: float, steps: int) -> tuple[Tensor, str]:
    """Return the S values that each of d dimensions takes in a traversal, [d, S], and a caption that explains them.

    For a Gaussian posterior they go from -reach to reach, standard deviations of p(z). A model of several layers has
    lower priors other than N(0, I), so there the unit is the standard deviation of the encodings about their mean.

    Args:
        encodings: Encodings of the data.
        dimensions: d axes of z.
        reach: Standard deviations to either side.
        steps: S, the number of values.
    """
    values = torch.linspace(-reach, reach, steps).expand(len(dimensions), steps)
    if encodings.log_sd is not None:
        return values, f"from {-reach:g} to {reach:g} standard deviations of p(z)"
    mean = project_onto_axes(encodings.mean, dimensions)
    spread = mean.std(0, correction=min(1, len(mean) - 1))[:, None]  # a single example has none
    caption = f"from {-reach:g} to {reach:g} standard deviations of the encodings about their mean"
    return mean.mean(0)[:, None] + spread * values, caption


def traverse(z: Tensor, dimensions: Sequence[Axis], values: Tensor) -> Tensor:
    """Return z [n, d, S, D]: each of n z [n, D] with one of d dimensions set to each of S ``values`` [d, S].

    Args:
        z: Latents of n examples, [n, D].
        dimensions: d axes of z; all places of a channel are set together.
        values: Values of all dimensions [S], or of each [d, S].

    Example:
        >>> traverse(torch.zeros(1, 2), [1], torch.tensor([-1.0, 1.0])).tolist()
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


def interpolate(start: Tensor, end: Tensor, steps: int, spherical: bool = True) -> Tensor:
    """Return S points [S, ..., D] between two z, both ends included.

    Spherical interpolation turns the direction evenly along the shortest arc and changes the length evenly, so that
    points keep the typical length of draws from a Gaussian prior of many dimensions; the middle of a straight line is
    shorter than nearly all draws. If the ends point in the same or in opposite directions, the points lie on a line.

    Args:
        start: First z, [..., D].
        end: Last z, [..., D].
        steps: S, at least 2.
        spherical: Whether to interpolate along the arc instead of a straight line.

    Example:
        >>> round(interpolate(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), 3)[1].norm().item(), 4)
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


def interpolate_with_labels(model: Model, start: Tensor, end: Tensor, steps: int, spherical: bool = True) -> Tensor:
    """Interpolate as :func:`interpolate`, but switch labels that are part of z halfway; return z [S, ..., D]."""
    if not model.discrete_layers:
        return interpolate(start, end, steps, spherical)
    shares = torch.linspace(0, 1, steps, dtype=start.dtype, device=start.device).reshape(-1, *[1] * start.dim())
    sizes, parts = list(model.latent.layers.values()), []
    for name, one, other in zip(model.latent.layers, start.split(sizes, -1), end.split(sizes, -1), strict=True):
        discrete = name in model.discrete_layers
        parts.append(torch.where(shares > 0.5, other, one) if discrete else interpolate(one, other, steps, spherical))
    return torch.cat(parts, -1)
