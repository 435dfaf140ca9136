"""Encoding examples into posteriors over z, a bounded number at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.seeding import torch_generator
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.posterior import Posterior
from mmgen.models import Model
from mmgen.training.precision import autocast

__all__ = ["LayeredPosterior", "encode_parts", "encode_points", "mean_parts", "posterior_of"]

_CHUNK = 512
"""Examples encoded at a time."""


@dataclass(frozen=True)
class LayeredPosterior:
    """q(z | inputs) [N, D] of a model whose posterior is no single Gaussian: layers of z, or labels as part of it.

    Draws and densities are of all layers together, so that each draw has its own of every layer.

    Attributes:
        model: The model.
        points: The N examples, on its device.
        inputs: The modalities that the posterior is given.
        precision: Arithmetic of the encoder: auto, 32-true or bf16-mixed.
        seed: Seed of the draws of lower layers that means of those above are given.
    """

    model: Model
    points: Batch
    inputs: tuple[str, ...]
    precision: str = "auto"
    seed: int = 0

    @cached_property
    @torch.no_grad()
    def mean(self) -> Tensor:
        """Means [N, D], equal for equal seeds; see :meth:`mmgen.models.Model.means`."""
        generator = torch_generator(self.seed, "layers of means", device=self.points.device)
        parts = mean_parts(self.model, self.points, self.inputs, self.precision, generator)
        return torch.cat([mean for _, mean in parts])

    @property
    def sd(self) -> Tensor:
        """Standard deviations; there are none.

        Raises:
            UsageError: Always; the message names the alternative.
        """
        raise UsageError(
            f"got a question for the standard deviation of q(z | {', '.join(self.inputs)}), expected one of a model "
            "whose posteriors are single Gaussians; of this one, draw with sample(...)"
        )

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw z [*shape, N, D] of all layers in fp32 or fp64."""
        return torch.cat([_at_least_single(q.sample(generator, shape)) for _, q in self._parts], -2)

    @torch.no_grad()
    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density [..., N] in nats for z [..., N, D]."""
        return torch.cat([q.log_prob(z[..., rows, :]) for rows, q in self._parts], -1)

    @torch.no_grad()
    def label_log_probabilities(self, name: str) -> Tensor | None:
        """Return log q(y_k | inputs) [N, A, V] of attributes that are part of z; None if they are not.

        Args:
            name: The modality of attributes.
        """
        tables = []
        for rows in _parts(self.points.size):
            with autocast(self.points.device, self.precision):
                table = self.model.label_log_probabilities(name, self.points[rows], self.inputs)
            if table is None:
                return None
            tables.append(table)
        return torch.cat(tables)

    def draw_lower_layers(self, generator: torch.Generator) -> DiagonalGaussian:
        """Draw the layers below the top once, and return the Gaussian [N, D]; see :meth:`Model.encode`."""
        return encode_points(self.model, self.points, self.inputs, self.precision, generator)

    def __getitem__(self, rows: slice) -> "LayeredPosterior":
        """Return the posterior of some of the examples, with means by new draws of lower layers."""
        return LayeredPosterior(self.model, self.points[rows], self.inputs, self.precision, self.seed)

    @cached_property
    @torch.no_grad()
    def _parts(self) -> list[tuple[slice, Posterior]]:
        """Posteriors of parts of the examples with their rows; each is encoded once."""
        parts = []
        for rows in _parts(self.points.size):
            with autocast(self.points.device, self.precision):  # densities over z need more than bf16
                parts.append((rows, self.model.posterior(self.points[rows], self.inputs)))
        return parts


def posterior_of(
    model: Model, points: Batch, inputs: tuple[str, ...], precision: str = "auto", seed: int = 0
) -> DiagonalGaussian | LayeredPosterior:
    """Return q(z | inputs) [N, D] of examples, with ``mean``, ``sample`` and ``log_prob`` for any kind of model.

    Args:
        model: The model.
        points: The N examples, on its device.
        inputs: The modalities that the posterior is given.
        precision: Arithmetic of the encoder: auto, 32-true or bf16-mixed.
        seed: Seed of means of layers, which are given draws of those below; a single Gaussian needs none.
    """
    if "gaussian" in model.capabilities:
        return encode_points(model, points, inputs, precision)
    return LayeredPosterior(model, points, inputs, precision, seed)


@torch.no_grad()
def encode_points(
    model: Model,
    points: Batch,
    inputs: tuple[str, ...],
    precision: str = "auto",
    generator: torch.Generator | None = None,
) -> DiagonalGaussian:
    """Return q(z | inputs) of examples [N, D] in fp32 or fp64; layers below the top are drawn once.

    Aggregated posteriors are fitted to it. For draws and means use :func:`posterior_of`: draws of this Gaussian would
    share their lower layers.

    Args:
        model: The model.
        points: The N examples, on its device.
        inputs: The modalities that the posterior is given.
        precision: Arithmetic of the encoder: auto, 32-true or bf16-mixed.
        generator: Randomness of the draws of layers; a single Gaussian needs none.

    Raises:
        ValueError: There are layers to draw, and no generator.
    """
    parts = [posterior for _, posterior in encode_parts(model, points, inputs, precision, generator)]
    return DiagonalGaussian(torch.cat([q.mean for q in parts]), torch.cat([q.log_sd for q in parts]))


def encode_parts(
    model: Model,
    points: Batch,
    inputs: tuple[str, ...],
    precision: str = "auto",
    generator: torch.Generator | None = None,
) -> Iterator[tuple[slice, DiagonalGaussian]]:
    """Yield q(z | inputs) of parts of the examples with their rows, for reports of progress."""
    if generator is None and "gaussian" not in model.capabilities:
        raise ValueError("layers of z are drawn here, and there is no generator to draw them; see posterior_of")
    for rows in _parts(points.size):
        with autocast(points.device, precision):
            posterior = model.encode(points[rows], inputs, generator)
        yield rows, DiagonalGaussian(_at_least_single(posterior.mean), _at_least_single(posterior.log_sd))


def mean_parts(
    model: Model, points: Batch, inputs: tuple[str, ...], precision: str, generator: torch.Generator
) -> Iterator[tuple[slice, Tensor]]:
    """Yield means of q(z | inputs) [n, D] in parts with their rows; see :meth:`Model.means`."""
    for rows in _parts(points.size):
        with autocast(points.device, precision):
            means = model.means(points[rows], inputs, generator)
        yield rows, _at_least_single(means)


def _parts(size: int) -> list[slice]:
    return [slice(start, min(start + _CHUNK, size)) for start in range(0, size, _CHUNK)]


def _at_least_single(numbers: Tensor) -> Tensor:
    return numbers if numbers.dtype == torch.float64 else numbers.float()
