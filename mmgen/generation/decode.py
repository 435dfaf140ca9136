"""Decoding z into pictures and words, a bounded number at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mmgen.core.errors import UsageError, check_finite, format_unknown_name
from mmgen.generation.latents import random_stream
from mmgen.training.precision import autocast

if TYPE_CHECKING:
    from mmgen.core.batch import Batch
    from mmgen.generation.descriptions import Descriptions
    from mmgen.generation.trained_model import TrainedModel


def _sharpens(loaded: "TrainedModel", modality: str) -> bool:
    """Return whether a sharpener completes the pictures of a modality."""
    return loaded.sharpener is not None and loaded.sharpener.network.image == modality


def _sharpen(loaded: "TrainedModel", modality: str, means: Tensor, words: "Batch | None") -> Tensor:
    """Return the means [B, C, H, W] of a modality, finite ones, sharpened where the model has a sharpener of it."""
    check_finite(means, f"values of {modality} drawn by {loaded.path}")
    if loaded.sharpener is None or not _sharpens(loaded, modality):
        return means
    sharpened: Tensor = loaded.sharpener.network(means.clamp(0, 1), words)
    return sharpened


_CHUNK = 256
"""Images decoded at a time."""
_WORDS = 8192
"""Latents whose words are decoded at a time."""


@dataclass(frozen=True)
class DecodedPictures:
    """Pictures that one pass through the decoder yields: n pictures for each of q descriptions.

    Attributes:
        rows: Positions of the descriptions among all Q.
        draws: Positions of the draws among all of each description.
        means: E[image | z], float32 [q, n, C, H, W].
        sampled: Draws from p(image | z), of the same shape; None if only means are decoded.
    """

    rows: slice
    draws: slice
    means: Tensor
    sampled: Tensor | None = None

    @property
    def classifier_input(self) -> Tensor:
        """Images that the attribute classifier reads: ``sampled`` if it is not None, else ``means``."""
        return self.means if self.sampled is None else self.sampled


def _decoder_batches(descriptions: int, count: int) -> Iterator[tuple[slice, slice]]:
    """Yield, for each pass through the decoder, a slice of the descriptions and a slice of the draws of each."""
    # A description's draws are cut at the same places whatever the other descriptions are, so its pixels do not change.
    together = max(1, _CHUNK // count)
    for start in range(0, descriptions, together):
        for low in range(0, count, _CHUNK):
            yield slice(start, min(start + together, descriptions)), slice(low, min(low + _CHUNK, count))


@torch.no_grad()
def decode_pictures(
    loaded: "TrainedModel",
    modality: str,
    z: Tensor,
    descriptions: "Descriptions",
    seed: int,
    *,
    sampled: bool = True,
    earlier_draws: int = 0,
    precision: str = "auto",
) -> Iterator[DecodedPictures]:
    """Decode z [Q, n, D] to pictures of one modality, and yield them in parts of bounded size.

    Args:
        loaded: The model.
        modality: The image modality.
        z: From :func:`~mmgen.generation.latents.draw_latents`.
        descriptions: The Q descriptions, which conditional decoders see as they are completed for each draw.
        seed: Seed of the pixels.
        sampled: Whether to draw pixels besides their means.
        earlier_draws: Number of earlier draws of each description; later pixels have another random stream.
        precision: Arithmetic of the decoder: auto, 32-true or bf16-mixed.
    """
    model, device = loaded.model, str(loaded.device)
    # The main picture is the same whatever else is drawn from its z.
    further_key = () if loaded.observation is not None and modality == loaded.observation.name else (modality,)
    streams = [
        random_stream(seed, "pixels", (*further_key, *descriptions.stream_key(row)), earlier_draws, device=device)
        for row in range(len(descriptions))
    ]
    values = model.modalities[modality]
    for rows, draws in _decoder_batches(*z.shape[:2]):
        part = z[rows, draws]
        needs_words = model.conditional_on or _sharpens(loaded, modality)
        condition = descriptions.batch_of_draws(loaded, rows, draws) if needs_words else None
        with autocast(loaded.device, precision):
            parameters = model.decode(modality, part.flatten(0, 1), condition if model.conditional_on else None)
            means = _sharpen(loaded, modality, values.typical(parameters).float(), condition).float()
            means = means.unflatten(0, part.shape[:2])
            drawn = means if sampled else None  # a sharpener's pictures have no noise of pixels
            if sampled and not _sharpens(loaded, modality):
                each = parameters.unflatten(0, part.shape[:2])
                drawn = torch.stack(
                    [values.sample(one, generator).float() for one, generator in zip(each, streams[rows], strict=True)]
                )
        yield DecodedPictures(rows, draws, means, drawn)


@torch.no_grad()
def draw_words(
    loaded: "TrainedModel", modality: str, z: Tensor, descriptions: "Descriptions", seed: int, precision: str = "auto"
) -> Tensor:
    """Draw word codes int64 [Q, n, T], or attribute codes [Q, n, A], from p(words | z) at z [Q, n, D]."""
    codes = []
    for row, latents in enumerate(z):
        generator = random_stream(seed, "words", descriptions.stream_key(row), device=str(loaded.device))
        with autocast(loaded.device, precision):
            parts = [loaded.model.sample(modality, part, generator) for part in latents.split(_CHUNK)]
        codes.append(torch.cat(parts))
    return torch.stack(codes)


@torch.no_grad()
def decode_means(
    loaded: "TrainedModel", modality: str, z: Tensor, condition: "Batch | None" = None, precision: str = "32-true"
) -> Tensor:
    """Decode z [..., D] to the mean E[modality | z] [..., *shape] in fp32 or fp64, in parts of bounded size.

    Of sentences it is the likeliest one, word by word.

    Args:
        loaded: The model.
        modality: The modality: images in [0, 1], probabilities of attributes, or codes of words.
        z: Latents.
        condition: Description for conditional decoders: one for all, or one for each z [N, D].
        precision: Arithmetic of the decoder: auto, 32-true or bf16-mixed.
    """
    words = [part.name for part in (loaded.attributes, loaded.text) if part is not None]
    at_once = _WORDS if modality in words else _CHUNK
    flat, parts = z.reshape(-1, z.shape[-1]), []
    for start in range(0, len(flat), at_once):
        rows = slice(start, start + at_once)
        with autocast(loaded.device, precision):
            described = _condition_of_rows(condition, rows, len(flat[rows]))
            part = loaded.model.decode(modality, flat[rows], described if loaded.model.conditional_on else None)
            mean = _sharpen(loaded, modality, loaded.model.modalities[modality].typical(part), described)
        parts.append(mean if mean.dtype == torch.float64 else mean.float())
    decoded = torch.cat(parts)
    return decoded.reshape(*z.shape[:-1], *decoded.shape[1:])


def _condition_of_rows(condition: "Batch | None", rows: slice, count: int) -> "Batch | None":
    if condition is None:
        return None
    return condition.repeat(count) if condition.size == 1 else condition[rows]


@torch.no_grad()
def decode_means_and_draws(
    loaded: "TrainedModel",
    modality: str,
    z: Tensor,
    condition: "Batch | None",
    generator: torch.Generator,
    precision: str = "32-true",
) -> tuple[Tensor, Tensor]:
    """Decode z [n, D] to the means E[image | z] and to images drawn from p(image | z), [n, C, H, W] each.

    Args:
        loaded: The model.
        modality: The image modality.
        z: Latents.
        condition: Description for conditional decoders: one for all, or one for each z.
        generator: Randomness of the pixels.
        precision: Arithmetic of the decoder: auto, 32-true or bf16-mixed.
    """
    values = loaded.model.modalities[modality]
    averages, drawn = [], []
    for start in range(0, len(z), _CHUNK):
        rows = slice(start, start + _CHUNK)
        with autocast(loaded.device, precision):
            words = _condition_of_rows(condition, rows, len(z[rows]))
            parameters = loaded.model.decode(modality, z[rows], words if loaded.model.conditional_on else None)
            averages.append(_sharpen(loaded, modality, values.typical(parameters).float(), words).float())
            sharp = _sharpens(loaded, modality)
            drawn.append(averages[-1] if sharp else values.sample(parameters, generator).float())
    return torch.cat(averages), torch.cat(drawn)


def resolve_targets(loaded: "TrainedModel", targets: Sequence[str] = ()) -> list[str]:
    """Return ``targets`` after checking that the model draws them; without targets, return its main modality.

    Raises:
        UsageError: The model draws only words, or does not draw a target.
    """
    if loaded.observation is None:
        raise UsageError(f"{loaded.path} generates only words, so it has no pictures to draw; use a model of pictures")
    names = list(dict.fromkeys(targets)) or [loaded.observation.name]
    for name in names:
        check_target(loaded, name)
    return names


def drawable_pictures(loaded: "TrainedModel") -> list[str]:
    """Return the modalities that a model can draw as pictures, the main one first."""
    return [name for name in drawable_modalities(loaded) if loaded.observed[name].picture_shape is not None]


def drawable_modalities(loaded: "TrainedModel") -> list[str]:
    """Return the modalities that a model can draw, except words, the main one first."""
    return [name for name in loaded.observed if name in loaded.model.generates]


def check_target(loaded: "TrainedModel", target: str) -> None:
    """Raise an error if a model has no decoder of the modality ``target``.

    Raises:
        UsageError: The model does not draw ``target``; the message lists the modalities that it draws.
    """
    drawn = drawable_modalities(loaded)
    if target in drawn:
        return
    if target in loaded.observed:
        raise UsageError(
            f"{loaded.path} has no decoder of {target}, expected one of the modalities that it draws: "
            f"{', '.join(drawn) or 'only words'}; choose one of them"
        )
    raise UsageError(format_unknown_name("modality", target, drawn))
