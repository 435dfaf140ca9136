"""A variational autoencoder of all images, then logistic regression on the mean of q(z|x)."""

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from mmgen.contrib.baselines._base import LinearBaseline, build_image_model, encode_images, train_task
from mmgen.objectives.elbo import Elbo
from mmgen.training.task import ModelTask

__all__ = ["Vae"]


class Vae(LinearBaseline):
    """Logistic regression from the latents of a VAE of images, the joint model without labels (WG Section 5.1, baseline
    4).
    """

    networks = True

    def train_features(self) -> Generator[float, None, None]:
        image = self.data.image.name
        self._model = build_image_model(self.data, image)
        warmup = int(self.data.settings.objective.get("kl_warmup_steps", 0))
        objective = Elbo(modalities=(image,), given=(image,), kl_warmup_steps=warmup)
        yield from train_task(ModelTask(self._model, objective), self.data.rows("train"), self.data)

    def features(self, part: str) -> NDArray[np.float32]:
        return encode_images(self._model, self.data, part)
