"""Attributes and texts that a model predicts for images through z: p(y | x).

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
from mmgen.generation.decode import decode_means
from mmgen.generation.encode import encode_pictures
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.posteriors import LayeredPosterior

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = [
    "attribute_probabilities",
    "iterate_posterior_draws",
    "iterate_attribute_probabilities",
    "list_predictions",
    "texts_of_images",
]

_LATENTS = 8192
"""Latents per pass through a decoder of attributes."""
_TEXTS = 64
"""Images described at a time."""


def attribute_probabilities(
    loaded: "TrainedModel", images: np.ndarray | Mapping[str, np.ndarray], draws: int = 100, seed: int = 0
) -> np.ndarray:
    """Predict attributes of images: return p(y_k | x), the mean of p(y_k | z) over draws of q(z|x), or else q(y_k | x).

    Args:
        loaded: A model with a decoder of attributes.
        images: Images float32 [B, C, H, W] in [0, 1], or several modalities of the same examples by name.
        draws: Draws of z for each image.
        seed: Seed of the draws.

    Returns:
        Probabilities float32 [B, A, V]; 0 beyond an attribute's own number of values.

    Raises:
        UsageError: The model has no decoder of attributes.
    """
    info = loaded.attributes
    if info is None or info.name not in loaded.model.generates:
        raise UsageError(
            f"{loaded.path} generates no attributes, so it cannot predict those of images; "
            "use a joint model (elbo, telbo, jmvae, bivcca) or a judge"
        )
    return (
        torch.cat([*iterate_attribute_probabilities(loaded, info.name, encode_pictures(loaded, images), draws, seed)])
        .float()
        .cpu()
        .numpy()
    )


@torch.no_grad()
def iterate_attribute_probabilities(
    loaded: "TrainedModel",
    modality: str,
    posterior: DiagonalGaussian | LayeredPosterior,
    draws: int,
    seed: int,
    precision: str = "32-true",
) -> Iterator[Tensor]:
    """Yield the predicted probabilities p(y_k | x) of attributes, float64 [b, A, V], for b of N examples at a time.

    If attributes are part of z, the result is the encoder's q(y | x), in closed form and without draws.

    Args:
        loaded: A model with a decoder of attributes.
        modality: The modality of attributes.
        posterior: q(z | x) [N, D].
        draws: Draws of z for each example; 0 takes the mean of q.
        seed: Seed of the draws.
        precision: Arithmetic of the decoder: auto, 32-true or bf16-mixed.
    """
    known = posterior.label_log_probabilities(modality) if isinstance(posterior, LayeredPosterior) else None
    if known is not None:
        yield known.double().exp()
        return
    for z in iterate_posterior_draws(loaded, posterior, draws, seed):
        yield decode_means(loaded, modality, z, precision=precision).double().mean(0)


def iterate_posterior_draws(
    loaded: "TrainedModel", posterior: DiagonalGaussian | LayeredPosterior, draws: int, seed: int
) -> Iterator[Tensor]:
    """Yield draws of z [S, b, D] from q(z | x), or its mean [1, b, D] for 0 draws, b examples at a time."""
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
    """Generate texts for images: first the likeliest words at the mean of q(z|x), then texts from draws of z.

    Args:
        loaded: A model that generates text and infers z from images.
        images: Images float32 [B, C, H, W] in [0, 1], or several modalities of the same examples by name.
        draws: Texts drawn for each image.
        seed: Seed of the draws.

    Returns:
        For each image 1 + ``draws`` texts.

    Raises:
        UsageError: The model generates no text, or infers z only from images and texts together.
    """
    text, main = loaded.text, loaded.observation
    if text is None or main is None or text.name not in loaded.model.generates:
        raise UsageError(
            f"{loaded.path} generates no text, so it cannot describe images; use a model of images and text"
        )
    if not isinstance(images, Mapping) and not loaded.model.has_posterior((main.name,)):
        raise UsageError(
            f"{loaded.path} infers z only from images and texts together, so it cannot describe images; "
            "use a model of q(z|x), such as one trained with --set 'objective.given=[\"image\"]'"
        )
    generator = torch_generator(seed, "captions of images", device=str(loaded.device))
    posterior, texts = encode_pictures(loaded, images), []
    mean = posterior.mean
    for start in range(0, len(mean), _TEXTS):
        rows = slice(start, start + _TEXTS)
        likeliest = loaded.model.sample(text.name, mean[rows], greedy=True)
        drawn = loaded.model.sample(text.name, posterior[rows].sample(generator, (draws,)), generator)
        tokens = torch.cat([likeliest[None], drawn]).transpose(0, 1).cpu().numpy()
        texts += [[format_caption(row, text) for row in each] for each in tokens]
    return texts


def list_predictions(probabilities: np.ndarray, vocabulary: Vocabulary) -> dict[str, dict[str, Any]]:
    """Return one image's predictions by attribute: the most probable value, its probability, and all probabilities.

    Args:
        probabilities: p(y_k | x) of the image, [A, V].
        vocabulary: Names and values of the attributes.
    """
    predictions = {}
    for name, words, row in zip(vocabulary.names, vocabulary.values, probabilities, strict=True):
        best = int(np.argmax(row[: len(words)]))
        predictions[name] = {
            "value": words[best],
            "probability": round(float(row[best]), 6),
            "probabilities": {word: round(float(p), 6) for word, p in zip(words, row, strict=False)},
        }
    return predictions
