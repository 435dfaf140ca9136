"""From one kind of picture to another through the latent space of a joint model: colour, complete, segment.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 6
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from mmgen.batch import Batch
from mmgen.errors import UsageError
from mmgen.gaussian import DiagonalGaussian
from mmgen.generation.descriptions import describe
from mmgen.registry import unknown_name
from mmgen.seeding import torch_generator
from mmgen.training.batches import to_batch

if TYPE_CHECKING:
    from mmgen.generation.opened import Opened

__all__ = ["Pictures", "check_target", "decode", "drawn_images", "infer", "source_images", "translate"]

Pictures = Tensor | np.ndarray
"""Images [B, C, H, W] in [0, 1]."""

_CHUNK = 128
"""Images encoded or decoded at a time."""


def drawn_images(loaded: "Opened") -> list[str]:
    """Image modalities that a model draws, the main one first."""
    return [name for name in loaded.images if name in loaded.model.generates]


def source_images(loaded: "Opened") -> list[str]:
    """Image modalities from each of which alone a model infers z, the main one first."""
    return [name for name in loaded.images if loaded.model.answers((name,))]


def check_target(loaded: "Opened", target: str) -> None:
    """Refuse a kind of picture that a model does not draw.

    Raises:
        UsageError: It names the ones that it does.
    """
    drawn = drawn_images(loaded)
    if target in drawn:
        return
    if target in loaded.images:
        raise UsageError(
            f"{loaded.path} does not draw {target}, which its objective leaves out; it draws "
            f"{', '.join(drawn) or 'no images'}"
        )
    raise UsageError(unknown_name("image modality", target, drawn))


def _check_source(loaded: "Opened", names: Sequence[str], described: tuple[str, ...]) -> None:
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


def _described(loaded: "Opened", given: str | Mapping[str, str]) -> Batch | None:
    """A description as a batch of one; None where it says nothing."""
    if not given:
        return None
    batch = describe(loaded, given)
    return batch.select(loaded.informative(batch) or list(batch.values)[:1])


def infer(loaded: "Opened", pictures: Mapping[str, Pictures], given: str | Mapping[str, str] = "") -> DiagonalGaussian:
    """q(z | pictures) [B, D], or q(z | pictures, description).

    Args:
        loaded: The model.
        pictures: Images by modality, all of the same B examples.
        given: A description that holds for all of them.

    Raises:
        UsageError: The model infers no z from these, or images have another size than its own.
    """
    description = _described(loaded, given)
    said = tuple(description.values) if description is not None else ()
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
    parts = []
    with torch.inference_mode():
        for start in range(0, next(iter(sizes.values())), _CHUNK):
            batch = to_batch({name: images[start : start + _CHUNK] for name, images in tensors.items()}, {})
            if description is not None:
                every = description.repeat(batch.size)
                batch = Batch({**batch.values, **every.values}, {**batch.present, **every.present})
            parts.append(loaded.model.encode(batch.to(loaded.device), (*tensors, *said)))
    return DiagonalGaussian(
        torch.cat([part.mean.float() for part in parts]), torch.cat([part.log_sd.float() for part in parts])
    )


def decode(loaded: "Opened", target: str, z: Tensor, given: str | Mapping[str, str] = "") -> Tensor:
    """E[target | z]: z [..., D] -> [..., C, H, W] in [0, 1], a bounded number of images at a time."""
    check_target(loaded, target)
    condition = describe(loaded, given) if loaded.model.conditional_on else None
    parts = []
    with torch.inference_mode():
        for part in z.reshape(-1, z.shape[-1]).split(_CHUNK):
            every = None if condition is None else condition.repeat(len(part))
            parts.append(loaded.model.mean(target, part, every).float())
    images = torch.cat(parts)
    return images.reshape(*z.shape[:-1], *images.shape[1:])


def translate(
    loaded: "Opened",
    pictures: Mapping[str, Pictures],
    target: str,
    draws: int = 0,
    seed: int = 0,
    given: str | Mapping[str, str] = "",
) -> Tensor:
    """Pictures of another modality for given ones; see :meth:`mmgen.loading.Loaded.translate`."""
    check_target(loaded, target)
    posterior = infer(loaded, pictures, given)
    z = posterior.mean
    if draws:
        z = posterior.sample(torch_generator(seed, "translations", device=str(loaded.device)), (draws,))
    return decode(loaded, target, z, given)
