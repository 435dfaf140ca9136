"""Prediction of attributes and texts of images through the latent space: p(y | x).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Section 1: p(y|x) = integral of p(y|z) q(z|x) dz
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.core.seeding import torch_generator
from mmgen.descriptions import Vocabulary, format_caption
from mmgen.generation.decode import means
from mmgen.generation.encode import encode_pictures
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.posteriors import LayeredPosterior

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["attribute_probabilities", "latents_to_read", "read_parts", "reading", "texts_of_images"]

_LATENTS = 8192
"""Latents per pass through a decoder of attributes."""
_TEXTS = 64
"""Images put into words at a time."""


def attribute_probabilities(
    loaded: "TrainedModel", images: np.ndarray | Mapping[str, np.ndarray], draws: int = 100, seed: int = 0
) -> np.ndarray:
    """Return p(y_k | x) of every attribute: p(y_k | z) averaged over draws of q(z|x), or q(y_k | x) if y is in z.

    Args:
        loaded: A model with a decoder of attributes.
        images: float32 [B, C, H, W] in [0, 1], or several kinds of pictures of the same examples by modality.
        draws: Draws of z for each image.
        seed: Seed of the draws.

    Returns:
        float32 [B, A, V]; 0 beyond an attribute's own number of values.

    Raises:
        UsageError: The model cannot read attributes off images.
    """
    info = loaded.attributes
    if info is None or info.name not in loaded.model.generates:
        raise UsageError(
            f"{loaded.path} generates no attributes, so it cannot read them off images; "
            "use a joint model (elbo, telbo, jmvae, bivcca) or a judge"
        )
    return (
        torch.cat([*read_parts(loaded, info.name, encode_pictures(loaded, images), draws, seed)]).float().cpu().numpy()
    )


@torch.no_grad()
def read_parts(
    loaded: "TrainedModel",
    name: str,
    posterior: DiagonalGaussian | LayeredPosterior,
    draws: int,
    seed: int,
    precision: str = "32-true",
) -> Iterator[Tensor]:
    """Yield p(y_k | x) [b, A, V] of attributes in float64, for a bounded number of the N examples at a time.

    Attributes that are part of z are read by the model's own q(y | x), in closed form and without draws.

    Args:
        loaded: A model with a decoder of attributes.
        name: The modality of attributes.
        posterior: q(z | x) [N, D].
        draws: Draws of z for each example; 0 takes the mean of q alone.
        seed: Seed of the draws.
        precision: Arithmetic of the decoder: auto, 32-true or bf16-mixed.
    """
    known = posterior.label_log_probabilities(name) if isinstance(posterior, LayeredPosterior) else None
    if known is not None:
        yield known.double().exp()
        return
    for z in latents_to_read(loaded, posterior, draws, seed):
        yield means(loaded, name, z, precision=precision).double().mean(0)


def latents_to_read(
    loaded: "TrainedModel", posterior: DiagonalGaussian | LayeredPosterior, draws: int, seed: int
) -> Iterator[Tensor]:
    """Yield draws z [S, b, D] from q(z | x), or its mean [1, b, D], for a bounded number of examples at a time."""
    generator = torch_generator(seed, "reading", device=str(loaded.device))
    width = max(1, _LATENTS // max(1, draws))
    mean = posterior.mean
    for start in range(0, len(mean), width):
        rows = slice(start, start + width)
        yield posterior[rows].sample(generator, (draws,)) if draws else mean[rows].unsqueeze(0)


@torch.no_grad()
def texts_of_images(
    loaded: "TrainedModel", images: np.ndarray | Mapping[str, np.ndarray], draws: int = 3, seed: int = 0
) -> list[list[str]]:
    """Return texts for images: the likeliest words at the mean of q(z|x), then texts from draws of z.

    Args:
        loaded: A model that generates text and infers z from images.
        images: float32 [B, C, H, W] in [0, 1], or several kinds of pictures of the same examples by modality.
        draws: Texts drawn for each image.
        seed: Seed of the draws.

    Returns:
        For each image 1 + ``draws`` texts.

    Raises:
        UsageError: The model generates no text, or infers z from images and texts together only.
    """
    text, main = loaded.text, loaded.observation
    if text is None or main is None or text.name not in loaded.model.generates:
        raise UsageError(f"{loaded.path} generates no text, so it cannot put images into words; use a model of both")
    if not isinstance(images, Mapping) and not loaded.model.has_posterior((main.name,)):
        raise UsageError(
            f"{loaded.path} infers z from images and texts together, so it cannot put images alone into words; "
            "use a model of q(z|x), such as one trained with --set 'objective.given=[\"image\"]'"
        )
    generator = torch_generator(seed, "captions of images", device=str(loaded.device))
    posterior, found = encode_pictures(loaded, images), []
    mean = posterior.mean
    for start in range(0, len(mean), _TEXTS):
        rows = slice(start, start + _TEXTS)
        likeliest = loaded.model.sample(text.name, mean[rows], greedy=True)
        drawn = loaded.model.sample(text.name, posterior[rows].sample(generator, (draws,)), generator)
        tokens = torch.cat([likeliest[None], drawn]).transpose(0, 1).cpu().numpy()
        found += [[format_caption(row, text) for row in each] for each in tokens]
    return found


def reading(probabilities: np.ndarray, info: Vocabulary) -> dict[str, dict[str, Any]]:
    """Return one image's predicted attributes: the most probable value, its probability, and all probabilities.

    Args:
        probabilities: [A, V].
        info: The attributes' words.
    """
    read = {}
    for name, words, row in zip(info.names, info.values, probabilities, strict=True):
        best = int(np.argmax(row[: len(words)]))
        read[name] = {
            "value": words[best],
            "probability": round(float(row[best]), 6),
            "probabilities": {word: round(float(p), 6) for word, p in zip(words, row, strict=False)},
        }
    return read
