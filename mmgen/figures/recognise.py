"""From images to attributes: p(y | x) through the latent space.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Section 1: p(y|x) = integral of p(y|z) q(z|x) dz
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmgen.artifacts import Dataset, require_kind
from mmgen.errors import ArtifactError, UsageError
from mmgen.queries import Vocabulary, format_caption

if TYPE_CHECKING:
    from mmgen.gaussian import DiagonalGaussian
    from mmgen.loading import Loaded

__all__ = ["attribute_probabilities", "images_of_dataset", "images_of_file", "reading", "texts_of_images"]

_CHUNK = 64
_FILE_SUFFIXES = (".h5", ".hdf5")


def images_of_dataset(path: Path, rows: Sequence[int], modality: str = "") -> tuple[np.ndarray, list[str]]:
    """Images float32 [n, C, H, W] in [0, 1] of rows of a dataset, and what to call them.

    Args:
        path: The dataset.
        rows: Which rows.
        modality: Which images, where it has several; the modality "image", else the first, where it has no such.

    Raises:
        UsageError: A row that the dataset does not have, or a dataset without images.
    """
    with Dataset.open(path) as data:
        if not data.images:
            raise UsageError(f"{path} holds no images; choose a dataset that does")
        info = data.images.get(modality) or data.images.get("image") or next(iter(data.images.values()))
        images = data.read_pixels(info.name, np.asarray(rows, np.int64))
    return images, [f"{path.name} row {row}" for row in rows]


def images_of_file(
    path: Path, shape: Sequence[int], rows: Sequence[int] = (), modality: str = ""
) -> tuple[np.ndarray, list[str]]:
    """Images to look at, from a picture, a samples file or rows of a dataset file.

    Args:
        path: A picture (see :data:`mmgen.pictures.FORMATS`), or .h5.
        shape: (C, H, W) that the model expects.
        rows: Rows of a dataset or of samples; without any all samples, or the first 16 of a dataset.
        modality: Which images of a file that has several.

    Returns:
        float32 [n, C, H, W] in [0, 1], and what to call each.

    Raises:
        ArtifactError: It cannot be read as any of these.
        UsageError: Images of another size.
    """
    if path.suffix.lower() in _FILE_SUFFIXES:
        if require_kind(path, "samples", "dataset").kind == "dataset":
            images, names = images_of_dataset(path, list(rows) or list(range(16)), modality)
        else:
            images, names = _images_of_samples(path, rows, modality)
    else:
        images, names = _picture(path, shape)[None], [path.name]
    if tuple(images.shape[1:]) != tuple(shape):
        raise _wrong_size(path, images.shape[1:], shape)
    return images, names


def _images_of_samples(path: Path, rows: Sequence[int], modality: str) -> tuple[np.ndarray, list[str]]:
    from mmgen.artifacts.samples import read_samples

    samples = read_samples(path)
    # A sampled image is what the decoder's distribution means by an image; the mean is a blur between several.
    means, sampled = samples.further.get(modality, (samples.images, samples.images_sampled))
    images = means if sampled is None else sampled.astype(np.float32) / 255
    chosen = list(rows) or list(range(len(images)))
    if min(chosen) < 0 or max(chosen) >= len(images):
        raise UsageError(f"{path} has samples 0 to {len(images) - 1}, got {max(chosen)}; choose one that it has")
    return images[chosen], [f"{path.name} sample {row}" for row in chosen]


def _picture(path: Path, shape: Sequence[int]) -> np.ndarray:
    """A picture of the size that the model expects, float32 [C, H, W]; others are refused undecoded."""
    from mmgen.foreign import CannotReadError
    from mmgen.pictures import WrongSizeError, read_picture

    channels, height, width = (int(n) for n in shape)
    try:
        picture = read_picture(path, "RGB" if channels == 3 else "L", size=(width, height))
    except WrongSizeError as error:
        raise _wrong_size(path, (channels, *error.size[::-1]), shape) from None
    except CannotReadError as error:
        raise ArtifactError(
            f"cannot read the picture {path}: {error}; name a picture, or an HDF5 file (.h5) of images"
        ) from None
    pixels = np.asarray(picture, np.float32) / 255
    return pixels.transpose(2, 0, 1) if channels == 3 else pixels[None]


def _wrong_size(path: Path, got: Sequence[int], expected: Sequence[int]) -> UsageError:
    said = ["x".join(map(str, shape)) for shape in (got, expected)]
    return UsageError(f"{path} has images of {said[0]} (channels x height x width), expected {said[1]}; resize them")


def attribute_probabilities(
    loaded: "Loaded", images: np.ndarray | Mapping[str, np.ndarray], draws: int = 100, seed: int = 0
) -> np.ndarray:
    """p(y_k | x) of every attribute: p(y_k | z) averaged over draws of z from q(z|x).

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
    import torch

    from mmgen.seeding import torch_generator

    info = loaded.attributes
    if info is None or info.name not in loaded.model.decoders:
        raise UsageError(
            f"{loaded.path} generates no attributes, so it cannot read them off images; "
            "use a joint model (elbo, telbo, jmvae, bivcca) or a judge"
        )
    generator = torch_generator(seed, "recognise", device=str(loaded.device))
    parts = []
    with torch.inference_mode():
        for posterior in _posteriors(loaded, images):
            z = posterior.sample(generator, (draws,))
            parts.append(loaded.model.mean(info.name, z).float().mean(0).cpu().numpy())
    return np.concatenate(parts)


def _posteriors(loaded: "Loaded", images: np.ndarray | Mapping[str, np.ndarray]) -> "Iterator[DiagonalGaussian]":
    """q(z|x) of images, a bounded number at a time; of several kinds of pictures, q(z | all of them)."""
    if isinstance(images, Mapping):
        for start in range(0, len(next(iter(images.values()))), _CHUNK):
            yield loaded.encode({name: each[start : start + _CHUNK] for name, each in images.items()})
        return
    for start in range(0, len(images), _CHUNK):
        yield loaded.encode(images[start : start + _CHUNK])


def texts_of_images(
    loaded: "Loaded", images: np.ndarray | Mapping[str, np.ndarray], draws: int = 3, seed: int = 0
) -> list[list[str]]:
    """What a model says of images: the likeliest words at the mean of q(z|x), then draws of z and words.

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
    import torch

    from mmgen.seeding import torch_generator

    text, image = loaded.text, loaded.image
    if text is None or image is None or text.name not in loaded.model.decoders:
        raise UsageError(f"{loaded.path} generates no text, so it cannot put images into words; use a model of both")
    if not isinstance(images, Mapping) and not loaded.model.answers((image.name,)):
        raise UsageError(
            f"{loaded.path} infers z from images and texts together, so it cannot put images alone into words; "
            "use a model of q(z|x), such as one trained with --set 'objective.given=[\"image\"]'"
        )
    generator = torch_generator(seed, "captions of images", device=str(loaded.device))
    found: list[list[str]] = []
    with torch.inference_mode():
        for posterior in _posteriors(loaded, images):
            likeliest = loaded.model.sample(text.name, posterior.mean, greedy=True)
            drawn = loaded.model.sample(text.name, posterior.sample(generator, (draws,)), generator)
            tokens = torch.cat([likeliest[None], drawn]).transpose(0, 1).cpu().numpy()
            found += [[format_caption(row, text) for row in each] for each in tokens]
    return found


def reading(probabilities: np.ndarray, info: Vocabulary) -> dict[str, dict[str, Any]]:
    """One image's attributes as plain values: the most probable one, its probability, and all of them.

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
