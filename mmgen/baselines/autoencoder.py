"""An autoencoder of all images, then logistic regression on its code."""

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from mmgen.baselines._logistic import LinearBaseline
from mmgen.baselines._networks import WithoutNoise, encode, fit, model_of_images

__all__ = ["Autoencoder"]


class Autoencoder(LinearBaseline):
    """The VAE's networks without its noise and divergence; the code is z (WG Section 5.1, baseline 3)."""

    networks = True

    def prepare(self) -> Generator[float, None, None]:
        image = self.material.image.name
        self._model = model_of_images(self.material, image)
        yield from fit(WithoutNoise(self._model, image, image), self.material.rows("train"), self.material)
        # Nothing holds the code to any scale, and penalties depend on it: it is brought to that of a standard normal.
        self._scale = float(encode(self._model, self.material, "train").std()) or 1.0

    def features(self, part: str) -> NDArray[np.float32]:
        return encode(self._model, self.material, part) / np.float32(self._scale)
