"""Encoding of examples into z: pictures, pictures with descriptions, or several kinds of pictures."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.generation.descriptions import describe
from mmgen.generation.examples import Examples
from mmgen.generation.inputs import Numbers, Pictures, checked_codes, checked_values, checked_words
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.posteriors import LayeredPosterior, posterior_of
from mmgen.settings.arguments import format_value
from mmgen.settings.registry import unknown_name
from mmgen.training.batches import batch_of

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["Pictures", "encode_examples", "encode_pictures", "infer", "source_images"]


def encode_pictures(
    loaded: "TrainedModel",
    images: Pictures | Mapping[str, Pictures],
    attributes: Numbers | None = None,
    text: Numbers | None = None,
) -> DiagonalGaussian | LayeredPosterior:
    """Return q(z | image) [B, D], or q(z | image, description); see :meth:`mmgen.generation.TrainedModel.encode`."""
    if isinstance(images, Mapping):
        if attributes is not None or text is not None:
            raise UsageError("got images by modality and codes of a description, expected one of them")
        return infer(loaded, images)
    if loaded.observation is None:
        raise UsageError(f"{loaded.path} has words alone, so it has no pictures to encode; use a model of pictures")
    main = loaded.observation.name
    values = {main: checked_values(loaded.observation, images)}
    size = len(values[main])
    for what, value, info in (("attributes", attributes, loaded.attributes), ("text", text, loaded.text)):
        if value is not None and info is None:
            raise UsageError(f"{what} got {format_value(value)}, but {loaded.path} knows no {what}; leave them out")
    if loaded.attributes is not None:
        codes = np.full((size, len(loaded.attributes.names)), UNKNOWN, np.uint8)
        if attributes is not None:
            codes = checked_codes("attributes", attributes, loaded.attributes, size)
        values[loaded.attributes.name] = torch.from_numpy(codes)
    if loaded.text is not None and text is not None:
        values[loaded.text.name] = torch.from_numpy(checked_words("text", text, loaded.text, size))
    described = attributes is not None or text is not None
    sources = loaded.encoder_inputs if described else (main,)
    if not loaded.model.has_posterior(sources):
        sources = loaded.encoder_inputs
    batch = batch_of(loaded.settings.data.modalities, values).to(loaded.device)
    return posterior_of(loaded.model, batch, sources)


def encode_examples(loaded: "TrainedModel", examples: Examples) -> DiagonalGaussian | LayeredPosterior:
    """Return posteriors [n, D] of examples, q(z|x) or q(z|x,y), of the kind that the decoders were trained with."""
    return encode_pictures(loaded, examples.images, examples.codes, examples.tokens)


def source_images(loaded: "TrainedModel") -> list[str]:
    """Return the picture modalities from which, one alone, a model infers z, the main one first."""
    examples = [name for name, described in loaded.observed.items() if described.picture_shape is not None]
    return [name for name in examples if loaded.model.has_posterior((name,))]


def _check_source(loaded: "TrainedModel", names: Sequence[str], described: tuple[str, ...]) -> None:
    for name in names:
        if name not in loaded.observed:
            raise UsageError(unknown_name("modality", str(name), list(loaded.observed)))
    if not names:
        expected = ", ".join(loaded.observed) or "no modality"
        raise UsageError(f"got nothing to start from, expected some of {expected}")
    if not loaded.model.has_posterior((*names, *described)):
        alone = [name for name in loaded.observed if loaded.model.has_posterior((name,))]
        raise UsageError(
            f"{loaded.path} infers no z from {' and '.join((*names, *described))}; "
            f"it does from {', '.join(alone) or 'no single one'}. A model that does is trained with "
            "--objective mvae"
        )


def _described(loaded: "TrainedModel", description: str | Mapping[str, str]) -> Batch | None:
    """Return a description as a batch of one; None if it is empty."""
    if not description:
        return None
    batch = describe(loaded, description)
    return batch.select((loaded.encoder.informative(batch) if loaded.encoder else ()) or list(batch.values)[:1])


def infer(
    loaded: "TrainedModel", pictures: Mapping[str, Pictures], description: str | Mapping[str, str] = ""
) -> DiagonalGaussian | LayeredPosterior:
    """Return q(z | pictures) [B, D], or q(z | pictures, description).

    Args:
        loaded: The model.
        pictures: Images by modality, all of the same B examples.
        description: One that holds for all of them.

    Raises:
        UsageError: The model infers no z from these, or images have another size than its own.
    """
    described = _described(loaded, description)
    words = tuple(described.values) if described is not None else ()
    _check_source(loaded, list(pictures), words)
    tensors = {name: checked_values(loaded.observed[name], values) for name, values in pictures.items()}
    sizes = {name: len(images) for name, images in tensors.items()}
    if len(set(sizes.values())) != 1:
        raise UsageError(f"got pictures of different numbers of examples, {sizes}, expected the same number of each")
    batch = batch_of(loaded.observed, tensors)
    if described is not None:
        batch = batch | described.repeat(batch.size)
    # Pictures that a person starts from are few, and what is drawn of them should not depend on the processor.
    return posterior_of(loaded.model, batch.to(loaded.device), (*tensors, *words), "32-true")
