"""A network from image to label with the joint model's layers, trained on the pairs alone."""

from collections.abc import Generator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.baselines._base import Baseline
from mmgen.baselines._networks import WithoutNoise, fit, model_of_images
from mmgen.batch import Batch
from mmgen.objectives._base import Bound

__all__ = ["Supervised"]

_CHUNK = 1000


class _Reading(WithoutNoise):
    """Trained by log p(label | image), stopped by accuracy: with few pairs the former falls while the latter rises."""

    def forward(self, batch: Batch, step: int | None) -> Bound:
        """log p(label | image) in nats [B]; in validation 1 where all known labels are right, else 0."""
        if step is not None:
            return super().forward(batch, step)
        z = self.model.posterior(batch, (self.image,)).mean
        said = self.model.mean(self.generated, z).argmax(-1)
        wrong = (said != batch.values[self.generated]) & batch.present[self.generated]
        return Bound((~wrong.any(-1)).float())


class Supervised(Baseline):
    """Image encoder, z without noise, label decoder (WG Section 5.1, baseline 1); initial weights as the others'."""

    def read(self, share: float) -> Generator[float, None, tuple[NDArray[np.int64], dict[str, Any]]]:
        material = self.material
        image, attributes = material.image.name, material.attributes.name
        model = model_of_images(material, attributes)
        facts = yield from fit(_Reading(model, image, attributes), material.pairs(share), material)
        rows = material.rows("test")
        said = []
        with torch.inference_mode():
            for chunk in torch.arange(len(rows)).split(_CHUNK):
                z = model.posterior(rows.batch(chunk).select([image]), (image,)).mean
                said.append(model.mean(attributes, z)[:, material.column].argmax(-1).cpu().numpy())
        return np.concatenate(said), {"step": facts["step"], "validation_accuracy": 100 * facts["validation_bound"]}
