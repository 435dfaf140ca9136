"""Inference from the image alone: q(z | x), whatever else is known (CK Section 2), so that z ignores wording."""

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.inference._base import Inference, Inputs, ModalityPosterior, Parts
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.image import Image

__all__ = ["ImageOnly"]


class ImageOnly(Inference):
    """Inference q(z | x); q(z | x, y) equals it, and there is no q(z | y): fit that afterwards."""

    def __init__(self, parts: Parts, queries: frozenset[Inputs]) -> None:
        super().__init__()
        image = parts.of_kind(Image)
        if image is None:
            raise SettingsError("inference image-only reads a picture, and the objective looks at none; use joint")
        self.image = ModalityPosterior(parts, image)

    def has_posterior(self, inputs: Inputs) -> bool:
        return self.image.modality.name in inputs

    def infer(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        posterior: DiagonalGaussian = self.image(batch)
        return posterior
