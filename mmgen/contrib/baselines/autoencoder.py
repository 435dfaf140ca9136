"""An autoencoder of all images, then logistic regression on its code."""

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from mmgen.contrib.baselines._base import LinearBaseline, NoiselessTask, build_image_model, encode_images, train_task

__all__ = ["Autoencoder"]


class Autoencoder(LinearBaseline):
    """Logistic regression from the code of an autoencoder with the VAE's networks (WG Section 5.1, baseline 3)."""

    networks = True

    def train_features(self) -> Generator[float, None, None]:
        image = self.data.image.name
        self._model = build_image_model(self.data, image)
        yield from train_task(NoiselessTask(self._model, image, image), self.data.rows("train"), self.data)
        # Nothing holds the code to any scale, and penalties depend on it: it is brought to that of a standard normal.
        self._scale = float(encode_images(self._model, self.data, "train").std()) or 1.0

    def features(self, part: str) -> NDArray[np.float32]:
        return encode_images(self._model, self.data, part) / np.float32(self._scale)
