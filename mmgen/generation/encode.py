"""z from examples: pictures, pictures with what belongs to them, or several kinds of pictures."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from mmgen.batch import Batch
from mmgen.encoding import LayeredPosterior, posterior_of
from mmgen.errors import UsageError
from mmgen.gaussian import DiagonalGaussian
from mmgen.generation.descriptions import describe
from mmgen.generation.examples import Examples
from mmgen.notation import UNKNOWN
from mmgen.registry import unknown_name
from mmgen.training.batches import batch_of

if TYPE_CHECKING:
    from mmgen.generation.open_model import OpenModel

__all__ = ["Pictures", "encode", "encode_examples", "infer", "pixels_of", "source_images"]

Pictures = Tensor | np.ndarray
"""Images [B, C, H, W] in [0, 1]."""


def pixels_of(loaded: "OpenModel", images: Pictures) -> Tensor:
    """Images of the main modality as float32 in [0, 1], whichever way they are given.

    Raises:
        UsageError: They are neither in [0, 1] nor bytes.
    """
    assert loaded.image is not None
    pixels = torch.as_tensor(images)
    if pixels.dtype == torch.uint8 and loaded.image.layout == "bytes":
        return pixels.float() / 255
    if loaded.image.layout == "probabilities" and pixels.dtype == torch.uint8 and (pixels > 1).any():
        raise UsageError(
            "images got probabilities of white, as Dataset.read_image gives them, expected pixels of 0 and 1; "
            "use Dataset.read_pixels, which draws them"
        )
    pixels = pixels.float()
    if pixels.numel() and not ((pixels >= 0) & (pixels <= 1)).all():
        raise UsageError(
            f"images got values from {float(pixels.min()):g} to {float(pixels.max()):g}, expected 0 to 1, or uint8 "
            "as Dataset.read_image gives them"
        )
    return pixels


def encode(
    loaded: "OpenModel",
    images: Pictures | Mapping[str, Pictures],
    attributes: np.ndarray | None = None,
    text: np.ndarray | None = None,
) -> DiagonalGaussian | LayeredPosterior:
    """q(z | image) [B, D], or q(z | image, description); see :meth:`mmgen.loading.TrainedModel.encode`."""
    if isinstance(images, Mapping):
        if attributes is not None or text is not None:
            raise UsageError("got images by modality and codes of a description, expected one of them")
        return infer(loaded, images)
    assert loaded.image is not None
    values = {loaded.image.name: pixels_of(loaded, images)}
    if loaded.attributes is not None:
        unknown = np.full((len(values[loaded.image.name]), len(loaded.attributes.names)), UNKNOWN, np.uint8)
        values[loaded.attributes.name] = torch.as_tensor(unknown if attributes is None else attributes)
    if loaded.text is not None and text is not None:
        values[loaded.text.name] = torch.as_tensor(np.asarray(text, np.int64))
    described = attributes is not None or text is not None
    given = loaded.encoder_given if described else (loaded.image.name,)
    if not loaded.model.answers(given):
        given = loaded.encoder_given
    batch = batch_of(loaded.settings.data.modalities, values).to(loaded.device)
    return posterior_of(loaded.model, batch, given)


def encode_examples(loaded: "OpenModel", shown: Examples) -> DiagonalGaussian | LayeredPosterior:
    """Posteriors [n, D] of examples, given what the model's decoders were trained with: q(z|x) or q(z|x,y)."""
    return encode(loaded, shown.images, shown.codes, shown.tokens)


def source_images(loaded: "OpenModel") -> list[str]:
    """Image modalities from each of which alone a model infers z, the main one first."""
    return [name for name in loaded.images if loaded.model.answers((name,))]


def _check_source(loaded: "OpenModel", names: Sequence[str], described: tuple[str, ...]) -> None:
    for name in names:
        if name not in loaded.images:
            raise UsageError(unknown_name("image modality", name, list(loaded.images)))
    if not names:
        raise UsageError(f"got no pictures to start from, expected some of {', '.join(loaded.images) or 'no modality'}")
    if not loaded.model.answers((*names, *described)):
        alone = source_images(loaded)
        raise UsageError(
            f"{loaded.path} infers no z from {' and '.join((*names, *described))}; "
            f"it does from {', '.join(alone) or 'no single kind of picture'}. A model that does is trained with "
            "--objective mvae"
        )


def _described(loaded: "OpenModel", description: str | Mapping[str, str]) -> Batch | None:
    """A description as a batch of one; None where it says nothing."""
    if not description:
        return None
    batch = describe(loaded, description)
    return batch.select(loaded.informative(batch) or list(batch.values)[:1])


def infer(
    loaded: "OpenModel", pictures: Mapping[str, Pictures], description: str | Mapping[str, str] = ""
) -> DiagonalGaussian | LayeredPosterior:
    """q(z | pictures) [B, D], or q(z | pictures, description).

    Args:
        loaded: The model.
        pictures: Images by modality, all of the same B examples.
        description: One that holds for all of them.

    Raises:
        UsageError: The model infers no z from these, or images have another size than its own.
    """
    described = _described(loaded, description)
    said = tuple(described.values) if described is not None else ()
    _check_source(loaded, list(pictures), said)
    tensors = {name: torch.as_tensor(images, dtype=torch.float32) for name, images in pictures.items()}
    for name, images in tensors.items():
        expected = tuple(loaded.images[name].shape)
        if tuple(images.shape[1:]) != expected:
            got, wanted = ("x".join(map(str, shape)) for shape in (images.shape[1:], expected))
            raise UsageError(f"got {name} of {got} (channels x height x width), expected {wanted}; resize them")
    sizes = {name: len(images) for name, images in tensors.items()}
    if len(set(sizes.values())) != 1:
        raise UsageError(f"got pictures of different numbers of examples, {sizes}, expected the same number of each")
    batch = batch_of(loaded.images, tensors)
    if described is not None:
        batch = batch | described.repeat(batch.size)
    # Pictures that a person starts from are few, and what is drawn of them should not depend on the processor.
    return posterior_of(loaded.model, batch.to(loaded.device), (*tensors, *said), "32-true")
