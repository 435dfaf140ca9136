"""From examples to posteriors over z, a bounded number at a time: the one way of it."""

from collections.abc import Iterator

import torch

from mmgen.batch import Batch
from mmgen.gaussian import DiagonalGaussian
from mmgen.models._base import Model
from mmgen.training.precision import autocast

__all__ = ["encode_parts", "encode_points", "mean_parts"]

_CHUNK = 512
"""Examples encoded at a time."""


@torch.no_grad()
def encode_points(
    model: Model,
    points: Batch,
    given: tuple[str, ...],
    precision: str = "auto",
    generator: torch.Generator | None = None,
) -> DiagonalGaussian:
    """q(z | given) of examples [N, D], in fp32 at least; of layers, those below the top are drawn.

    Args:
        model: The model.
        points: The N examples, on its device.
        given: The modalities that the posterior is given.
        precision: Arithmetic of the encoder: auto, 32-true or bf16-mixed.
        generator: Randomness of the draws of layers; a single Gaussian needs none.
    """
    parts = [posterior for _, posterior in encode_parts(model, points, given, precision, generator)]
    return DiagonalGaussian(torch.cat([q.mean for q in parts]), torch.cat([q.log_sd for q in parts]))


def encode_parts(
    model: Model,
    points: Batch,
    given: tuple[str, ...],
    precision: str = "auto",
    generator: torch.Generator | None = None,
) -> Iterator[tuple[slice, DiagonalGaussian]]:
    """The same part by part, each with the rows that it is of; for whoever reports progress."""
    for rows in _parts(points.size):
        with autocast(points.device, precision):
            posterior = model.encode(points[rows], given, generator)
        yield rows, DiagonalGaussian(_at_least_single(posterior.mean), _at_least_single(posterior.log_sd))


def mean_parts(
    model: Model, points: Batch, given: tuple[str, ...], precision: str, generator: torch.Generator | None
) -> Iterator[tuple[slice, torch.Tensor]]:
    """Means of q(z | given) [n, D] part by part, with their rows; see :meth:`Model.means`."""
    for rows in _parts(points.size):
        with autocast(points.device, precision):
            means = model.means(points[rows], given, generator)
        yield rows, _at_least_single(means)


def _parts(size: int) -> list[slice]:
    return [slice(start, min(start + _CHUNK, size)) for start in range(0, size, _CHUNK)]


def _at_least_single(numbers: torch.Tensor) -> torch.Tensor:
    return numbers if numbers.dtype == torch.float64 else numbers.float()
