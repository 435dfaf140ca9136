"""Encoding of examples (pictures of one or more modalities, descriptions) to posteriors over z, and back."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError, check_finite, format_unknown_name
from mmgen.core.seeding import torch_generator
from mmgen.descriptions import Vocabulary, format_caption
from mmgen.generation.decode import decode_means, resolve_targets
from mmgen.generation.descriptions import (
    batch_of_descriptions,
    check_is_plain,
    check_posterior_reads,
    description_batch,
    format_description,
    parse_descriptions,
)
from mmgen.generation.examples import Examples
from mmgen.generation.inputs import Numbers, Pictures, validate_codes, validate_values, validate_words
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.posteriors import Encoder, LayeredPosterior, Prior, latents_from, posterior_of
from mmgen.settings.arguments import format_value
from mmgen.training.batches import make_batch

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel


def encode_pictures(
    loaded: "TrainedModel",
    images: Pictures | Mapping[str, Pictures],
    attributes: Numbers | None = None,
    text: Numbers | None = None,
) -> DiagonalGaussian | LayeredPosterior:
    """Return q(z | image) [B, D], or q(z | image, description); see :meth:`mmgen.generation.TrainedModel.encode`."""
    if isinstance(images, Mapping):
        if attributes is not None or text is not None:
            raise UsageError(
                "got images by modality and codes of attributes or text, "
                "expected codes only with a single array of images; "
                "leave the codes out"
            )
        return infer_posterior(loaded, images)
    if loaded.observation is None:
        raise UsageError(f"{loaded.path} has only words, so it has no pictures to encode; use a model of pictures")
    main = loaded.observation.name
    values = {main: validate_values(loaded.observation, images)}
    size = len(values[main])
    for name, value, info in (("attributes", attributes, loaded.attributes), ("text", text, loaded.text)):
        if value is not None and info is None:
            raise UsageError(f"{name} got {format_value(value)}, but {loaded.path} has no {name}; leave {name} out")
    if loaded.attributes is not None and attributes is not None:
        codes = validate_codes("attributes", attributes, loaded.attributes, size)
        values[loaded.attributes.name] = torch.from_numpy(codes)
    if loaded.text is not None and text is not None:
        values[loaded.text.name] = torch.from_numpy(validate_words("text", text, loaded.text, size))
    sources = _sources_among(loaded, values)
    batch = make_batch(loaded.settings.data.modalities, values).to(loaded.device)
    return posterior_of(loaded.model, batch, sources)


def _sources_among(loaded: "TrainedModel", given: Collection[str]) -> tuple[str, ...]:
    """Return the modalities to infer z from: those given, of the ones that the encoder read in training.

    Raises:
        UsageError: The encoder learned to read more of them together; nothing stands for what it has always seen.
    """
    sources = tuple(given) if len(given) == 1 else tuple(name for name in loaded.encoder_inputs if name in given)
    if sources and loaded.model.has_posterior(sources):
        return sources
    missing = [name for name in loaded.encoder_inputs if name not in given]
    words = {each.name: role for role, each in (("attributes", loaded.attributes), ("text", loaded.text)) if each}
    read = ", ".join(f'{words[name]}=data.read_{words[name]}("{name}", rows)' for name in missing if name in words)
    raise UsageError(
        f"{loaded.path} infers z from {' and '.join(loaded.encoder_inputs)} together, got {' and '.join(given)}; "
        f"give {read or ' and '.join(missing)} too"
    )


def decode_latents(
    loaded: "TrainedModel", z: Numbers, target: str | None, description: str | Mapping[str, str]
) -> Tensor:
    """Return E[target | z] [..., C, H, W]; see :meth:`mmgen.generation.TrainedModel.decode`."""
    name = resolve_targets(loaded, [target] if target else [])[0]
    if description and not loaded.model.conditional_on:
        raise UsageError(f"decoders of {loaded.path} read z alone, got a description too; leave it out")
    condition = description_batch(loaded, description) if loaded.model.conditional_on else None
    return decode_means(loaded, name, latents_from(z, loaded.model.latent_size).float().to(loaded.device), condition)


def reconstruct_pictures(
    loaded: "TrainedModel", images: Pictures, attributes: Numbers | None, text: Numbers | None
) -> Tensor:
    """Return E[image | z] [B, C, H, W] at encodings; see :meth:`mmgen.generation.TrainedModel.reconstruct`."""
    z = encode_pictures(loaded, images, attributes, text).mean
    pairs = ((loaded.attributes, attributes), (loaded.text, text))
    given = {info.name: torch.as_tensor(codes) for info, codes in pairs if info is not None and codes is not None}
    words = make_batch(loaded.settings.data.modalities, given).to(loaded.device) if given else None
    return decode_means(loaded, resolve_targets(loaded)[0], z, words)


def gaussian_posterior(
    loaded: "TrainedModel", description: str | Mapping[str, str], posterior: str | None
) -> DiagonalGaussian:
    """Return q(z | description) [1, D] or p(z); see :meth:`mmgen.generation.TrainedModel.posterior`."""
    default = loaded.fitted or loaded.encoder
    if posterior is None and default is None:
        raise UsageError(
            f"{loaded.model_path} has no encoder of descriptions; fit a posterior with: "
            f"mmgen fit-aggregate {loaded.model_path}"
        )
    source = loaded.posteriors[posterior or (default.name if default is not None else "")]
    if not isinstance(source, Prior | Encoder):
        hint = f'; posterior="own" selects the encoder of {loaded.model_path}' if loaded.encoder else ""
        raise UsageError(
            f"posterior '{source.name}' of {loaded.path} is fitted or guided, so it has no mean and standard "
            f"deviation: draw from it with sample(...) or posteriors['{source.name}'].sample(...){hint}"
        )
    descriptions = parse_descriptions(loaded, [format_description(description)])
    if not source.is_unconditional:
        check_posterior_reads(loaded, source.name, descriptions)
    check_is_plain(descriptions)
    q = source.gaussian(batch_of_descriptions(loaded, descriptions))
    check_finite(torch.stack([q.mean, q.sd]), f"means and deviations of the posterior of {loaded.path}")
    return q


def encode_examples(loaded: "TrainedModel", examples: Examples) -> DiagonalGaussian | LayeredPosterior:
    """Return the posterior [n, D] that the decoders were trained with: q(z | x) or q(z | x, y) of n examples."""
    return encode_pictures(loaded, examples.images, examples.codes, examples.tokens)


def picture_sources(loaded: "TrainedModel") -> list[str]:
    """Return the modalities of pictures from each of which alone a model can infer z, the main one first."""
    examples = [name for name, described in loaded.observed.items() if described.picture_shape is not None]
    return [name for name in examples if loaded.model.has_posterior((name,))]


def _check_source(loaded: "TrainedModel", names: Sequence[str], described: tuple[str, ...]) -> None:
    for name in names:
        if name not in loaded.observed:
            raise UsageError(format_unknown_name("modality", str(name), list(loaded.observed)))
    if not names:
        expected = ", ".join(loaded.observed) or "no modality"
        raise UsageError(f"got no modality to infer z from, expected some of {expected}; name at least one")
    if not loaded.model.has_posterior((*names, *described)):
        alone = [name for name in loaded.observed if loaded.model.has_posterior((name,))]
        raise UsageError(
            f"{loaded.path} cannot infer z from {' and '.join((*names, *described))}, expected one of "
            f"{', '.join(alone) or 'no single modality'}; choose one, or train with --objective mvae, which infers z "
            "from any"
        )


def _informative_batch(loaded: "TrainedModel", description: str | Mapping[str, str]) -> Batch | None:
    """Convert a description to a batch of one with the modalities that the encoder reads; return None if empty."""
    if not description:
        return None
    batch = description_batch(loaded, description)
    return batch.select(
        (loaded.encoder.informative_modalities(batch) if loaded.encoder else ()) or list(batch.values)[:1]
    )


def infer_posterior(
    loaded: "TrainedModel", pictures: Mapping[str, Pictures], description: str | Mapping[str, str] = ""
) -> DiagonalGaussian | LayeredPosterior:
    """Return q(z | pictures) [B, D], or q(z | pictures, description).

    Args:
        loaded: The model.
        pictures: Images by modality, all of the same B examples.
        description: One description for all examples.

    Raises:
        UsageError: The model cannot infer z from these modalities, or the images have another size than its own.
    """
    described = _informative_batch(loaded, description)
    words = tuple(described.values) if described is not None else ()
    _check_source(loaded, list(pictures), words)
    tensors = {name: validate_values(loaded.observed[name], values) for name, values in pictures.items()}
    sizes = {name: len(images) for name, images in tensors.items()}
    if len(set(sizes.values())) != 1:
        raise UsageError(
            f"got different numbers of pictures by modality, {sizes}, "
            f"expected equal numbers; give one picture of each modality per example"
        )
    batch = make_batch(loaded.observed, tensors)
    if described is not None:
        batch = batch | described.repeat(batch.size)
    # These pictures are few, and draws from their posterior should not depend on the processor.
    return posterior_of(loaded.model, batch.to(loaded.device), (*tensors, *words), "32-true")


_LATENTS = 8192
"""Latents per pass through a decoder of attributes."""
_TEXTS = 64
"""Images described at a time."""


def _check_can_read(loaded: "TrainedModel", images: np.ndarray | Mapping[str, np.ndarray]) -> None:
    """Refuse to read words off the main picture by a model that is told them with the picture."""
    main = loaded.observation
    alone = main is not None and (not isinstance(images, Mapping) or list(images) == [main.name])
    if alone and main is not None and not loaded.model.has_posterior((main.name,)):
        raise UsageError(
            f"{loaded.path} infers z only from {' and '.join(loaded.encoder_inputs)} together, so it cannot describe "
            "images; use a judge, or a model of q(z|x), such as one trained with --set 'objective.given=[\"image\"]'"
        )


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
    _check_can_read(loaded, images)
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
    _check_can_read(loaded, images)
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
