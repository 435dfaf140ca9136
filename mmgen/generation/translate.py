"""Translation of pictures of one modality to another through z: colouring, completing, segmenting.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 6
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.generation.decode import check_target, decode_means
from mmgen.generation.descriptions import description_batch
from mmgen.generation.encode import infer_posterior
from mmgen.generation.inputs import Pictures, check_draw_memory
from mmgen.generation.latents import draw_example_latents
from mmgen.posteriors import latents_from

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["decode", "translate_pictures"]


def decode(loaded: "TrainedModel", target: str, z: Tensor, description: str | Mapping[str, str] = "") -> Tensor:
    """Decode z [..., D] to mean pictures E[target | z] [..., C, H, W] in [0, 1], in parts of bounded size."""
    check_target(loaded, target)
    z = latents_from(z, loaded.model.latent_size).to(loaded.device)
    condition = description_batch(loaded, description) if loaded.model.conditional_on else None
    return decode_means(loaded, target, z, condition)


def translate_pictures(
    loaded: "TrainedModel",
    pictures: Mapping[str, Pictures],
    target: str,
    draws: int = 0,
    seed: int = 0,
    description: str | Mapping[str, str] = "",
    rows: Sequence[int] | None = None,
) -> Tensor:
    """Draw pictures of ``target`` from other modalities; see :meth:`mmgen.generation.TrainedModel.translate`."""
    check_target(loaded, target)
    posterior = infer_posterior(loaded, pictures, description)
    if not draws:
        return decode(loaded, target, posterior.mean, description)
    size = len(posterior.mean)
    if rows is not None and len(rows) != size:
        raise UsageError(
            f"rows got {len(rows)} numbers for {size} pictures, expected one for each picture; give {size}"
        )
    check_draw_memory([loaded.observed[target]], draws, size, "pictures")
    z = draw_example_latents(loaded, posterior, tuple(pictures), range(size) if rows is None else rows, draws, seed)
    return decode(loaded, target, z.transpose(0, 1), description)
