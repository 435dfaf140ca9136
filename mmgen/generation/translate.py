"""Translation between kinds of pictures through the latent space of a joint model: colour, complete, segment.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 6
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.generation.decode import check_target, means
from mmgen.generation.descriptions import describe
from mmgen.generation.encode import infer
from mmgen.generation.inputs import Pictures, check_draw_memory
from mmgen.generation.latents import draw_encoded
from mmgen.posteriors import latents_from

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["decode", "translate_pictures"]


def decode(loaded: "TrainedModel", target: str, z: Tensor, description: str | Mapping[str, str] = "") -> Tensor:
    """Return E[target | z] [..., C, H, W] in [0, 1] for z [..., D], a bounded number of images at a time."""
    check_target(loaded, target)
    z = latents_from(z, loaded.model.latent_size).to(loaded.device)
    condition = describe(loaded, description) if loaded.model.conditional_on else None
    return means(loaded, target, z, condition)


def translate_pictures(
    loaded: "TrainedModel",
    pictures: Mapping[str, Pictures],
    target: str,
    draws: int = 0,
    seed: int = 0,
    description: str | Mapping[str, str] = "",
    rows: Sequence[int] | None = None,
) -> Tensor:
    """Draw pictures of another modality; see :meth:`mmgen.generation.TrainedModel.translate`."""
    check_target(loaded, target)
    posterior = infer(loaded, pictures, description)
    if not draws:
        return decode(loaded, target, posterior.mean, description)
    size = len(posterior.mean)
    if rows is not None and len(rows) != size:
        raise UsageError(f"got {len(rows)} rows for {size} pictures, expected one for each")
    check_draw_memory([loaded.observed[target]], draws, size, "pictures")
    z = draw_encoded(loaded, posterior, tuple(pictures), range(size) if rows is None else rows, draws, seed)
    return decode(loaded, target, z.transpose(0, 1), description)
