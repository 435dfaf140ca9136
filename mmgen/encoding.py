"""From examples to posteriors over z, a bounded number at a time: the one way of it."""

from collections.abc import Iterator

import torch

from mmgen.batch import Batch
from mmgen.gaussian import DiagonalGaussian
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.training.precision import autocast

__all__ = ["encode_parts", "encode_points"]

_CHUNK = 512
"""Examples encoded at a time."""


@torch.no_grad()
def encode_points(
    model: MultimodalVAE, points: Batch, given: tuple[str, ...], precision: str = "auto"
) -> DiagonalGaussian:
    """q(z | given) of examples [N, D], in fp32 at least.

    Args:
        model: The model.
        points: The N examples, on its device.
        given: The modalities that the posterior is given.
        precision: Arithmetic of the encoder: auto, 32-true or bf16-mixed.
    """
    parts = [posterior for _, posterior in encode_parts(model, points, given, precision)]
    return DiagonalGaussian(torch.cat([q.mean for q in parts]), torch.cat([q.log_sd for q in parts]))


def encode_parts(
    model: MultimodalVAE, points: Batch, given: tuple[str, ...], precision: str = "auto"
) -> Iterator[tuple[slice, DiagonalGaussian]]:
    """The same part by part, each with the rows that it is of; for whoever reports progress."""
    for start in range(0, points.size, _CHUNK):
        rows = slice(start, min(start + _CHUNK, points.size))
        with autocast(points.device, precision):
            posterior = model.posterior(points[rows], given)
        yield rows, DiagonalGaussian(_at_least_single(posterior.mean), _at_least_single(posterior.log_sd))


def _at_least_single(numbers: torch.Tensor) -> torch.Tensor:
    return numbers if numbers.dtype == torch.float64 else numbers.float()
