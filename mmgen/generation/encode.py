"""Encoding of examples (pictures of one or more modalities, descriptions) to posteriors over z."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.core.notation import UNKNOWN
from mmgen.generation.descriptions import description_batch
from mmgen.generation.examples import Examples
from mmgen.generation.inputs import Numbers, Pictures, validate_codes, validate_values, validate_words
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.posteriors import LayeredPosterior, posterior_of
from mmgen.settings.arguments import format_value
from mmgen.training.batches import make_batch

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["Pictures", "encode_examples", "encode_pictures", "infer_posterior", "picture_sources"]


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
    if loaded.attributes is not None:
        codes = np.full((size, len(loaded.attributes.names)), UNKNOWN, np.uint8)
        if attributes is not None:
            codes = validate_codes("attributes", attributes, loaded.attributes, size)
        values[loaded.attributes.name] = torch.from_numpy(codes)
    if loaded.text is not None and text is not None:
        values[loaded.text.name] = torch.from_numpy(validate_words("text", text, loaded.text, size))
    described = attributes is not None or text is not None
    sources = loaded.encoder_inputs if described else (main,)
    if not loaded.model.has_posterior(sources):
        sources = loaded.encoder_inputs
    batch = make_batch(loaded.settings.data.modalities, values).to(loaded.device)
    return posterior_of(loaded.model, batch, sources)


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
