"""Image only: q(z | x) is used whatever else is known (CK Section 2), so that z holds nothing about wording."""

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.inference._base import Inference, Inputs, ModalityPosterior, Parts
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.image import Image

__all__ = ["ImageOnly"]


class ImageOnly(Inference):
    """q(z | x) alone; q(z | x, y) is taken to be q(z | x). There is no q(z | y): fit it afterwards."""

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
