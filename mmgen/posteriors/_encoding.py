"""Encoding of examples into posteriors over z, in parts of bounded size."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError, check_finite
from mmgen.core.seeding import torch_generator
from mmgen.latent.gaussian import DiagonalGaussian, Posterior
from mmgen.models import Model
from mmgen.training.precision import autocast

_CHUNK = 512
"""Examples encoded together."""


@dataclass(frozen=True)
class LayeredPosterior:
    """Posterior q(z | inputs) [N, D] that is no single Gaussian: of several layers of z, or with labels in z.

    Draws and densities are of all layers together.

    Attributes:
        model: The model.
        points: The N examples, on its device.
        inputs: The modalities that the posterior is given.
        precision: Arithmetic of the encoder: auto, 32-true or bf16-mixed.
        seed: Seed of the draws of lower layers, on which means of upper layers depend.
    """

    model: Model
    points: Batch
    inputs: tuple[str, ...]
    precision: str = "auto"
    seed: int = 0

    @cached_property
    @torch.no_grad()
    def mean(self) -> Tensor:
        """Means [N, D]; with layers of z they depend on draws, which follow from the seed."""
        generator = torch_generator(self.seed, "layers of means", device=self.points.device)
        parts = means_in_slices(self.model, self.points, self.inputs, self.precision, generator)
        return torch.cat([mean for _, mean in parts])

    @property
    def sd(self) -> Tensor:
        """Standard deviations, which such a posterior lacks: raises an error.

        Raises:
            UsageError: Always; the message names the alternative.
        """
        raise UsageError(
            f"q(z | {', '.join(self.inputs)}) of this model has no standard deviation, since it is no single Gaussian; "
            "draw from it with sample(...)"
        )

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw z [*shape, N, D] of all layers in fp32 or fp64."""
        return torch.cat([_to_at_least_float32(q.sample(generator, shape)) for _, q in self._posteriors_by_rows], -2)

    @torch.no_grad()
    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density [..., N] in nats for z [..., N, D]."""
        return torch.cat([q.log_prob(z[..., rows, :]) for rows, q in self._posteriors_by_rows], -1)

    @torch.no_grad()
    def label_log_probabilities(self, name: str) -> Tensor | None:
        """Return log q(y_k | inputs) [N, A, V] in nats of attributes that are part of z; None for other modalities.

        Args:
            name: Name of the modality of attributes.
        """
        tables = []
        for rows in _row_slices(self.points.size):
            with autocast(self.points.device, self.precision):
                table = self.model.label_log_probabilities(name, self.points[rows], self.inputs)
            if table is None:
                return None
            tables.append(table)
        return torch.cat(tables)

    def draw_lower_layers(self, generator: torch.Generator) -> DiagonalGaussian:
        """Draw all layers below the top once, and return q of the top given them, as a Gaussian [N, D]."""
        return encode_points(self.model, self.points, self.inputs, self.precision, generator)

    def __getitem__(self, rows: slice) -> "LayeredPosterior":
        """Return the posterior of some of the examples, whose means come from new draws of lower layers."""
        return LayeredPosterior(self.model, self.points[rows], self.inputs, self.precision, self.seed)

    @cached_property
    @torch.no_grad()
    def _posteriors_by_rows(self) -> list[tuple[slice, Posterior]]:
        """Slices of rows with their posteriors, encoded on first use."""
        posteriors = []
        for rows in _row_slices(self.points.size):
            with autocast(self.points.device, self.precision):  # densities over z need more than bf16
                posteriors.append((rows, self.model.posterior(self.points[rows], self.inputs)))
        return posteriors


def posterior_of(
    model: Model, points: Batch, inputs: tuple[str, ...], precision: str = "auto", seed: int = 0
) -> DiagonalGaussian | LayeredPosterior:
    """Return q(z | inputs) [N, D] of examples from any kind of model, with ``mean``, ``sample`` and ``log_prob``.

    Args:
        model: The model.
        points: The N examples, on its device.
        inputs: The modalities that the posterior is given.
        precision: Arithmetic of the encoder: auto, 32-true or bf16-mixed.
        seed: Seed of draws of lower layers, on which means of upper layers depend; unused for a single Gaussian.
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
    """Return q(z | inputs) of examples as a diagonal Gaussian [N, D] in fp32 or fp64.

    Layers below the top are drawn once. Aggregated posteriors are fitted to it. For draws and means use
    :func:`posterior_of`: draws of this Gaussian share their lower layers.

    Args:
        model: The model.
        points: The N examples, on its device.
        inputs: The modalities that the posterior is given.
        precision: Arithmetic of the encoder: auto, 32-true or bf16-mixed.
        generator: Randomness of the draws of layers; unused for a single Gaussian.

    Raises:
        ValueError: There are layers to draw, but no generator.
    """
    parts = [posterior for _, posterior in encode_in_slices(model, points, inputs, precision, generator)]
    return DiagonalGaussian(torch.cat([q.mean for q in parts]), torch.cat([q.log_sd for q in parts]))


def encode_in_slices(
    model: Model,
    points: Batch,
    inputs: tuple[str, ...],
    precision: str = "auto",
    generator: torch.Generator | None = None,
) -> Iterator[tuple[slice, DiagonalGaussian]]:
    """Yield slices of rows with their q(z | inputs) [n, D], so that progress can be reported; see
    :func:`encode_points`.
    """
    if generator is None and "gaussian" not in model.capabilities:
        raise ValueError(
            "generator got None, expected a torch.Generator, since this model has several layers of z; give one"
        )
    for rows in _row_slices(points.size):
        with autocast(points.device, precision):
            posterior = model.encode(points[rows], inputs, generator)
        check_finite(posterior.mean, "encodings by this model")
        yield rows, DiagonalGaussian(_to_at_least_float32(posterior.mean), _to_at_least_float32(posterior.log_sd))


def means_in_slices(
    model: Model, points: Batch, inputs: tuple[str, ...], precision: str, generator: torch.Generator
) -> Iterator[tuple[slice, Tensor]]:
    """Yield slices of rows with their means of q(z | inputs) [n, D]; see :meth:`Model.means`."""
    for rows in _row_slices(points.size):
        with autocast(points.device, precision):
            means = model.means(points[rows], inputs, generator)
        check_finite(means, "encodings by this model")
        yield rows, _to_at_least_float32(means)


def _row_slices(size: int) -> list[slice]:
    return [slice(start, min(start + _CHUNK, size)) for start in range(0, size, _CHUNK)]


def _to_at_least_float32(numbers: Tensor) -> Tensor:
    return numbers if numbers.dtype == torch.float64 else numbers.float()
