"""Decoding z into pictures and words, a bounded number at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.generation.latents import stream
from mmgen.settings.registry import unknown_name
from mmgen.training.precision import autocast

if TYPE_CHECKING:
    from mmgen.core.batch import Batch
    from mmgen.generation.descriptions import Descriptions
    from mmgen.generation.trained_model import TrainedModel

__all__ = [
    "Piece",
    "check_target",
    "drawable_pictures",
    "drawable_modalities",
    "draw_words",
    "means",
    "means_and_draws",
    "pictures",
    "resolve_targets",
]

_CHUNK = 256
"""Images decoded at a time."""
_WORDS = 8192
"""Latents whose words are decoded at a time."""


@dataclass(frozen=True)
class Piece:
    """Pictures of some descriptions, from one pass through the decoder.

    Attributes:
        rows: Which descriptions, q of them.
        draws: Which draws of each, n of them.
        means: E[image | z], float32 [q, n, C, H, W].
        sampled: Draws from p(image | z), of the same shape; None where they were not asked for.
    """

    rows: slice
    draws: slice
    means: Tensor
    sampled: Tensor | None = None

    @property
    def for_classifier(self) -> Tensor:
        """Images for the attribute classifier: sampled pixels if there are any, else means."""
        return self.means if self.sampled is None else self.sampled


def _pieces(descriptions: int, count: int) -> Iterator[tuple[slice, slice]]:
    """Yield the descriptions and their draws that go through the decoder together."""
    # The draws of a description are cut at the same places whatever the others are, so its stream of pixels is the
    # same.
    together = max(1, _CHUNK // count)
    for start in range(0, descriptions, together):
        for low in range(0, count, _CHUNK):
            yield slice(start, min(start + together, descriptions)), slice(low, min(low + _CHUNK, count))


@torch.no_grad()
def pictures(
    loaded: "TrainedModel",
    name: str,
    z: Tensor,
    descriptions: "Descriptions",
    seed: int,
    *,
    sampled: bool = True,
    have: int = 0,
    precision: str = "auto",
) -> Iterator[Piece]:
    """Yield pictures of one modality for z [Q, n, D], a bounded number at a time.

    Args:
        loaded: The model.
        name: The image modality.
        z: From :func:`~mmgen.generation.latents.draw_latents`.
        descriptions: The Q descriptions, which conditional decoders see.
        seed: Seed of the pixels.
        sampled: Draw pixels as well as their means.
        have: How many draws of each description there are already.
        precision: Arithmetic of the decoder: auto, 32-true or bf16-mixed.
    """
    model, device = loaded.model, str(loaded.device)
    # The main picture is the same whatever else is drawn from its z.
    of_it = () if loaded.observation is not None and name == loaded.observation.name else (name,)
    streams = [
        stream(seed, "pixels", (*of_it, *descriptions.key(row)), have, device=device)
        for row in range(len(descriptions))
    ]
    modality = model.modalities[name]
    for rows, draws in _pieces(*z.shape[:2]):
        part = z[rows, draws]
        condition = descriptions.batch(loaded, rows, part.shape[1]) if model.conditional_on else None
        with autocast(loaded.device, precision):
            parameters = model.decode(name, part.flatten(0, 1), condition)
            means = modality.mean(parameters).float().unflatten(0, part.shape[:2])
            drawn = None
            if sampled:
                each = parameters.unflatten(0, part.shape[:2])
                drawn = torch.stack(
                    [modality.sample(of_one, of).float() for of_one, of in zip(each, streams[rows], strict=True)]
                )
        yield Piece(rows, draws, means, drawn)


@torch.no_grad()
def draw_words(
    loaded: "TrainedModel", name: str, z: Tensor, descriptions: "Descriptions", seed: int, precision: str = "auto"
) -> Tensor:
    """Draw words or attribute codes int64 [Q, n, T or A] from the latents of pictures [Q, n, D]."""
    codes = []
    for row, latents in enumerate(z):
        generator = stream(seed, "words", descriptions.key(row), device=str(loaded.device))
        with autocast(loaded.device, precision):
            parts = [loaded.model.sample(name, part, generator) for part in latents.split(_CHUNK)]
        codes.append(torch.cat(parts))
    return torch.stack(codes)


@torch.no_grad()
def means(
    loaded: "TrainedModel", name: str, z: Tensor, condition: "Batch | None" = None, precision: str = "32-true"
) -> Tensor:
    """Return E[modality | z] [..., *shape] in fp32 or fp64 for z [..., D], a bounded number at a time.

    Args:
        loaded: The model.
        name: The modality: images in [0, 1], or probabilities of words.
        z: Latents.
        condition: What conditional decoders see: one description for all, or one for each z [N, D].
        precision: Arithmetic of the decoder: auto, 32-true or bf16-mixed.
    """
    words = [part.name for part in (loaded.attributes, loaded.text) if part is not None]
    at_once = _WORDS if name in words else _CHUNK
    flat, parts = z.reshape(-1, z.shape[-1]), []
    for start in range(0, len(flat), at_once):
        rows = slice(start, start + at_once)
        with autocast(loaded.device, precision):
            found = loaded.model.mean(name, flat[rows], _condition(loaded, condition, rows, len(flat[rows])))
        parts.append(found if found.dtype == torch.float64 else found.float())
    drawn = torch.cat(parts)
    return drawn.reshape(*z.shape[:-1], *drawn.shape[1:])


def _condition(loaded: "TrainedModel", condition: "Batch | None", rows: slice, count: int) -> "Batch | None":
    if condition is None or not loaded.model.conditional_on:
        return None
    return condition.repeat(count) if condition.size == 1 else condition[rows]


@torch.no_grad()
def means_and_draws(
    loaded: "TrainedModel",
    name: str,
    z: Tensor,
    condition: "Batch | None",
    generator: torch.Generator,
    precision: str = "32-true",
) -> tuple[Tensor, Tensor]:
    """Return means and sampled images of one modality for z [n, D], with one random stream for all.

    Args:
        loaded: The model.
        name: The image modality.
        z: Latents.
        condition: The description of all of them, or one of each, which conditional decoders see.
        generator: Randomness of the pixels.
        precision: Arithmetic of the decoder: auto, 32-true or bf16-mixed.
    """
    modality = loaded.model.modalities[name]
    averages, drawn = [], []
    for start in range(0, len(z), _CHUNK):
        rows = slice(start, start + _CHUNK)
        with autocast(loaded.device, precision):
            parameters = loaded.model.decode(name, z[rows], _condition(loaded, condition, rows, len(z[rows])))
            averages.append(modality.mean(parameters).float())
            drawn.append(modality.sample(parameters, generator).float())
    return torch.cat(averages), torch.cat(drawn)


def resolve_targets(loaded: "TrainedModel", targets: Sequence[str] = ()) -> list[str]:
    """Return the modalities to draw: the named ones, by default the main one.

    Raises:
        UsageError: The model draws nothing but words, or not these.
    """
    if loaded.observation is None:
        raise UsageError(f"{loaded.path} generates words alone, so it has no pictures to draw; use a model of pictures")
    names = list(dict.fromkeys(targets)) or [loaded.observation.name]
    for name in names:
        check_target(loaded, name)
    return names


def drawable_pictures(loaded: "TrainedModel") -> list[str]:
    """Return the modalities that a model can draw and that have pictures, the main one first."""
    return [name for name in drawable_modalities(loaded) if loaded.observed[name].picture_shape is not None]


def drawable_modalities(loaded: "TrainedModel") -> list[str]:
    """Return the modalities that a model can draw, without words, the main one first."""
    return [name for name in loaded.observed if name in loaded.model.generates]


def check_target(loaded: "TrainedModel", target: str) -> None:
    """Refuse a modality that a model does not draw.

    Raises:
        UsageError: It names the ones that it does.
    """
    drawn = drawable_modalities(loaded)
    if target in drawn:
        return
    if target in loaded.observed:
        raise UsageError(
            f"{loaded.path} has no decoder of {target}, expected one of the modalities that it draws: "
            f"{', '.join(drawn) or 'none but words'}"
        )
    raise UsageError(unknown_name("modality", target, drawn))
