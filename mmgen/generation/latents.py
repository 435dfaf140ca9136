"""z for descriptions: the one way of drawing it, for the command line, for Python and for metrics.

Each description has streams of randomness of its own, so that what is drawn for it depends neither on which others are
drawn nor on who asks.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mmgen.core.seeding import torch_generator
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.posteriors import LayeredPosterior

if TYPE_CHECKING:
    from mmgen.generation.descriptions import Descriptions
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["draw_encoded", "draw_latents", "stream"]

_AT_ONCE = 16_384
"""Draws of a description that are made together."""


def stream(seed: int, purpose: str, key: tuple[int | str, ...], have: int = 0, *, device: str) -> torch.Generator:
    """The stream of a description for a purpose.

    Args:
        seed: Seed of everything.
        purpose: "latents", "pixels" or "words".
        key: Key of the description, from :meth:`~mmgen.generation.descriptions.Descriptions.key`.
        have: How many draws there are already; those to come have a further stream.
        device: Where it draws.
    """
    further = ("after", have) if have else ()
    return torch_generator(seed, purpose, *further, *key, device=device)


@torch.no_grad()
def draw_latents(
    loaded: "TrainedModel", posterior: str, asked: "Descriptions", count: int, seed: int, have: int = 0
) -> Tensor:
    """z [Q, n, D] of n draws for each of Q descriptions.

    One description at a time: the numbers that a flow computes depend, in their last digit, on how many go together.

    Args:
        loaded: The model or aggregate; what it is guided by counts.
        posterior: One of its posteriors.
        asked: The descriptions.
        count: n.
        seed: Seed of the draws.
        have: How many draws of each there are already.
    """
    if loaded.tilt:  # its pool has the seed of the draws, whatever seed it was made with
        loaded = loaded.guided(loaded.tilt, seed)
    device = str(loaded.device)
    drawn = []
    for row in range(len(asked)):
        source = loaded.posteriors[posterior].answering(asked.expression(row))
        generator = stream(seed, "latents", asked.key(row), have, device=device)
        words = asked.batch(loaded, row)
        parts = [
            source.sample(words, min(_AT_ONCE, count - start), generator)[:, 0] for start in range(0, count, _AT_ONCE)
        ]
        drawn.append(torch.cat(parts))
    return torch.stack(drawn)


def draw_encoded(
    loaded: "TrainedModel",
    posterior: DiagonalGaussian | LayeredPosterior,
    sources: Sequence[str],
    rows: Sequence[int],
    count: int,
    seed: int,
) -> Tensor:
    """z [B, n, D] of n draws from the posterior [B, D] of each of B examples.

    Each example has a stream of its own, so that its draws do not depend on which others there are.

    Args:
        loaded: The model.
        posterior: q(z | sources).
        sources: The modalities that it was given.
        rows: A number of each example that its stream is known by, such as its row in a dataset.
        count: n.
        seed: Seed of the draws.
    """
    drawn = []
    for number, row in enumerate(rows):
        generator = stream(seed, "latents", (*sources, int(row)), device=str(loaded.device))
        drawn.append(posterior[slice(number, number + 1)].sample(generator, (count,))[:, 0])
    return torch.stack(drawn)
