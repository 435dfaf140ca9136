"""Encodings of many examples, a ranking of the dimensions of z, and their projection onto a plane.

References:
    Auto-Encoding Variational Bayes (Kingma, Welling, 2014), arXiv:1312.6114, Appendix B: the divergence by dimension
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.core.seeding import numpy_generator, torch_generator
from mmgen.latent import Axis, DiagonalGaussian, Posterior
from mmgen.modalities.image import Image
from mmgen.models import Model
from mmgen.posteriors import encode_points, means_in_slices
from mmgen.training.batches import DatasetRows

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel


_AT_ONCE = 2048
"""Examples that are unpacked together."""


@dataclass(frozen=True)
class Encodings:
    """Encodings of n examples: means and standard deviations of q(z | inputs), on the CPU.

    Attributes:
        rows: Rows in the dataset, int64 [n], increasing.
        mean: Means of z, [n, D].
        log_sd: Log standard deviations, [n, D]; None if the posterior is no single Gaussian. The mean of a layer is
            then conditional on a draw of the layers below.
        inputs: The modalities that the posterior reads.
        prior: p(z) [D] if it is another Gaussian than N(0, I).
    """

    rows: np.ndarray
    mean: Tensor
    log_sd: Tensor | None
    inputs: tuple[str, ...]
    prior: DiagonalGaussian | None = None


@dataclass(frozen=True)
class Ranking:
    """Ranking of the dimensions of z by the information that each holds about the data, the most informative first.

    Attributes:
        dimensions: Axes of z, of the layer next to the data if there are several; never of labels. An axis of a flat
            layer is a position in z, an axis of a grid the positions of a channel.
        values: The measure of each dimension, in the same order.
        measure: Its name: "mean KL in nats", or "variance of the mean" for a model of several layers.
        names: Labels for people: "z 3", or "z1 3" for layers; in the same order.
    """

    dimensions: list[Axis]
    values: list[float]
    measure: str
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Projection:
    """Projection of z onto a plane through the encodings: coordinates are (z - centre) times the axes.

    Attributes:
        centre: Mean of the encodings [D]; 0 for a z of two dimensions, which is shown unchanged.
        axes: Two orthonormal directions [2, D].
        shares: Share of the variance of the encodings along each axis, [2]; the sum is 1 for two dimensions.
    """

    centre: Tensor
    axes: Tensor
    shares: tuple[float, float]

    def __call__(self, z: Tensor) -> Tensor:
        """Project z [..., D] to coordinates [..., 2]."""
        return (z - self.centre) @ self.axes.T

    def to_latents(self, points: Tensor) -> Tensor:
        """Map coordinates [..., 2] back to z [..., D] in the plane."""
        return self.centre + points @ self.axes


def _inputs_to_encode(loaded: "TrainedModel") -> tuple[str, ...]:
    """Return the modalities to encode: the first that alone suffices to infer z, else all inputs of the encoder."""
    for name in loaded.observed:
        if loaded.model.has_posterior((name,)):
            return (name,)
    return loaded.encoder_inputs


def traversable_axes(model: Model) -> tuple[str, list[Axis]]:
    """Return the layer of z that a traversal changes, and its axes.

    It is the layer of real numbers next to the data; labels that are part of z are never traversed, nor is what belongs
    to words or anything else that is no picture.
    """
    owners = model.latent.owners
    for name in model.latent.layers:
        if name not in model.discrete_layers and (
            name not in owners or isinstance(model.modalities[owners[name]], Image)
        ):
            return name, model.latent.axes(name)
    return model.latent.top, []


def project_onto_axes(z: Tensor, axes: Sequence[Axis]) -> Tensor:
    """Return the coordinates [n, d] of z [n, D] along d axes; for a channel of a grid, the mean over its places."""
    if all(isinstance(axis, int) for axis in axes):
        return z[:, list(axes)]
    return torch.stack([z[:, [axis] if isinstance(axis, int) else list(axis)].mean(1) for axis in axes], 1)


@torch.no_grad()
def encode_split(loaded: "TrainedModel", dataset: Path, split: str, count: int, seed: int) -> Encodings:
    """Encode random examples of a split; nodes of a graph are encoded with all edges.

    Labels that are part of z take their likeliest values.

    Args:
        loaded: The model.
        dataset: Its dataset.
        split: train, val or test.
        count: Number of examples at most.
        seed: Seed of the choice.

    Raises:
        UsageError: The split is empty.
    """
    scheme, inputs, model = loaded.settings.data.split, _inputs_to_encode(loaded), loaded.model
    with Dataset.open(dataset) as data:
        if data.splits_edges(scheme):
            source = DatasetRows.open_split(data, scheme, "train", loaded.device, modalities=inputs)
        else:
            source = DatasetRows(data, data.split(scheme, split), loaded.device, modalities=inputs, seed=seed)
        every = len(source)
        if not every:
            raise UsageError(
                f"{dataset} has no {split} examples to encode, "
                f"expected at least one; choose a dataset with {split} examples"
            )
        chosen = np.sort(numpy_generator(seed, "encodings", split).permutation(every)[:count])
        generator = torch_generator(seed, "layers of encodings", device=loaded.device)
        parts: list[DiagonalGaussian] = []
        prior: Posterior | None = None
        means: list[Tensor] = []
        for indices in torch.from_numpy(chosen).split(_AT_ONCE):
            batch = source.batch(indices)
            if "gaussian" in model.capabilities:
                parts.append(encode_points(model, batch, inputs, "32-true"))
                prior = prior or model.posterior(batch[:1], ())
            else:
                means += [found for _, found in means_in_slices(model, batch, inputs, "32-true", generator)]
        rows = source.rows[chosen]
    if parts:
        mean = torch.cat([q.mean for q in parts]).cpu()
        known = DiagonalGaussian(prior.mean[0].cpu(), prior.log_sd[0].cpu()) if _is_gaussian(prior) else None
        return Encodings(rows, mean, torch.cat([q.log_sd for q in parts]).cpu(), inputs, known)
    return Encodings(rows, torch.cat(means).cpu(), None, inputs)


def rank_axes(loaded: "TrainedModel", encodings: Encodings) -> Ranking:
    r"""Rank the axes of z by their mean over examples of :math:`KL(q(z_d|x) \,\|\, p(z_d))`, nats.

    The divergence of a channel of a grid is the sum over its places. If q(z|x) is no single Gaussian, the axes of the
    layer next to the data are ranked by the variance of their means (Burda et al., 2016), since other layers influence
    a picture only through it. Labels that are part of z are left out (:func:`traversable_axes`).
    """
    mean = encodings.mean.double()
    layer, axes = traversable_axes(loaded.model)
    if encodings.log_sd is None:
        values, measure = project_onto_axes(mean, axes).var(0), "variance of the mean"
    else:
        each, log_sd = _divergence(mean, encodings.log_sd.double(), encodings.prior), encodings.log_sd
        grouped = [each[:, [axis] if isinstance(axis, int) else list(axis)].sum(1) for axis in axes]
        values, measure = (each if len(axes) == log_sd.shape[1] else torch.stack(grouped, 1)).mean(0), "mean KL in nats"
    order = values.argsort(descending=True, stable=True)
    positions = order.tolist()
    unit = layer if len(loaded.model.latent.shapes[layer]) == 1 else f"{layer} channel"
    names = [f"{unit} {number + 1}" for number in positions]
    return Ranking([axes[number] for number in positions], values[order].tolist(), measure, names)


def _divergence(mean: Tensor, log_sd: Tensor, prior: DiagonalGaussian | None) -> Tensor:
    """Return KL(q(z_d|x) || p(z_d)) in nats [n, D]."""
    if prior is not None:
        scale = prior.log_sd.double()
        mean, log_sd = (mean - prior.mean.double()) * (-scale).exp(), log_sd - scale
    return 0.5 * ((2 * log_sd).exp() + mean.square() - 1) - log_sd


def _is_gaussian(posterior: Posterior | None) -> TypeGuard[DiagonalGaussian]:
    return isinstance(posterior, DiagonalGaussian)


def principal_plane(mean: Tensor) -> Projection:
    """Return the plane in which encodings [n, D] vary most: their first two principal components.

    The largest component of each axis is positive. For two dimensions the plane is z itself, for one dimension z and an
    empty axis.

    Example:
        >>> z = torch.tensor([[3.0, 0.0, 0.1], [-3.0, 0.0, -0.1], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
        >>> plane = principal_plane(z)
        >>> plane.axes.abs().round().int().tolist(), [round(share, 2) for share in plane.shares]
        ([[1, 0, 0], [0, 1, 0]], [0.9, 0.1])
    """
    size = mean.shape[1]
    if size <= 2:
        variances = mean.double().var(0) if len(mean) > 1 else torch.ones(size, dtype=torch.float64)
        shares = (variances / variances.sum().clamp_min(1e-300)).tolist()
        axes = torch.eye(2, dtype=mean.dtype)[:, :size]
        return Projection(torch.zeros_like(mean[0]), axes, (shares[0], sum(shares[1:])))
    centre = mean.double().mean(0)
    _, lengths, directions = torch.linalg.svd(mean.double() - centre, full_matrices=False)
    axes = directions[:2]
    largest = axes.abs().argmax(1, keepdim=True)
    axes = axes * axes.gather(1, largest).sign()
    variances = lengths.square()
    if len(axes) < 2:  # a single example has no directions
        axes = torch.eye(size, dtype=torch.float64)[:2]
    shares = [*(variances / variances.sum().clamp_min(1e-300)).tolist(), 0.0]
    return Projection(centre.to(mean.dtype), axes.to(mean.dtype), (shares[0], shares[1]))


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
