"""Draws of z for descriptions or examples; commands, Python and metrics share the same random streams.

Each description has its own streams of randomness, so its draws depend neither on other descriptions nor on the caller.
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

__all__ = ["draw_example_latents", "draw_latents", "random_stream"]

_AT_ONCE = 16_384
"""Number of draws of a description in one batch."""


def random_stream(
    seed: int, purpose: str, key: tuple[int | str, ...], earlier_draws: int = 0, *, device: str
) -> torch.Generator:
    """Return the random generator that a seed, a purpose ("latents", "pixels") and the key of a description determine.

    Args:
        seed: Seed of the draws.
        purpose: "latents", "pixels" or "words".
        key: Key of the description, from :meth:`~mmgen.generation.descriptions.Descriptions.key`.
        earlier_draws: Number of earlier draws; later ones have another stream.
        device: Device of the stream.
    """
    further = ("after", earlier_draws) if earlier_draws else ()
    return torch_generator(seed, purpose, *further, *key, device=device)


@torch.no_grad()
def draw_latents(
    loaded: "TrainedModel", posterior: str, descriptions: "Descriptions", count: int, seed: int, earlier_draws: int = 0
) -> Tensor:
    """Draw z [Q, n, D] from a posterior: n draws for each of Q descriptions.

    Descriptions are drawn one at a time, since the last digit of a flow's output depends on the batch size.

    Args:
        loaded: The model, guided or not.
        posterior: Name of one of its posteriors.
        descriptions: The descriptions.
        count: n.
        seed: Seed of the draws.
        earlier_draws: Number of earlier draws of each.
    """
    if loaded.guidance:  # the pool of candidates takes the seed of these draws
        loaded = loaded.guided(loaded.guidance, seed)
    device = str(loaded.device)
    drawn = []
    for row in range(len(descriptions)):
        source = loaded.posteriors[posterior].condition_on(descriptions.expression(row))
        generator = random_stream(seed, "latents", descriptions.stream_key(row), earlier_draws, device=device)
        words = descriptions.batch(loaded, row)
        parts = [
            source.sample(words, min(_AT_ONCE, count - start), generator)[:, 0] for start in range(0, count, _AT_ONCE)
        ]
        drawn.append(torch.cat(parts))
    return torch.stack(drawn)


def draw_example_latents(
    loaded: "TrainedModel",
    posterior: DiagonalGaussian | LayeredPosterior,
    sources: Sequence[str],
    rows: Sequence[int],
    count: int,
    seed: int,
) -> Tensor:
    """Draw z [B, n, D]: n draws from the posterior [B, D] of each of B examples.

    Each example has its own stream, so its draws do not depend on the others.

    Args:
        loaded: The model.
        posterior: q(z | sources).
        sources: The modalities that it reads.
        rows: A number for each example, such as its row in a dataset, which selects its random stream.
        count: n.
        seed: Seed of the draws.
    """
    drawn = []
    for number, row in enumerate(rows):
        generator = random_stream(seed, "latents", (*sources, int(row)), device=str(loaded.device))
        drawn.append(posterior[slice(number, number + 1)].sample(generator, (count,))[:, 0])
    return torch.stack(drawn)
