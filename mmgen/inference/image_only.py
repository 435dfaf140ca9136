"""Inference from the image alone: q(z | x) even if more is known (CK Section 2), so that z ignores wording."""

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.inference._base import Inference, InferenceParts, Inputs, ModalityPosterior
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.image import Image

__all__ = ["ImageOnly"]


class ImageOnly(Inference):
    """Inference q(z | x) from the image; q(z | x, y) is the same, and q(z | y) can be fitted after training."""

    def __init__(self, parts: InferenceParts, queries: frozenset[Inputs]) -> None:
        super().__init__()
        image = parts.first_of_kind(Image)
        if image is None:
            raise SettingsError(
                "inference image-only needs an image, but the objective uses none; choose inference joint"
            )
        self.image = ModalityPosterior(parts, image)

    def has_posterior(self, inputs: Inputs) -> bool:
        return self.image.modality.name in inputs

    def infer(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        posterior: DiagonalGaussian = self.image(batch)
        return posterior
