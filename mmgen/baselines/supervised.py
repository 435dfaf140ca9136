"""A network from image to label with the joint model's layers, trained on the pairs alone."""

from collections.abc import Generator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.baselines._base import LabelReader, LabelSupply
from mmgen.baselines._networks import WithoutNoise, fit, model_of_images
from mmgen.core.batch import Batch
from mmgen.models import Model
from mmgen.objectives import Bound
from mmgen.training.task import ALONE

__all__ = ["Supervised"]

_CHUNK = 1000


class _Reading(WithoutNoise):
    """Trains p(label | image), with early stopping by accuracy.

    Args:
        model: The model of q(z|x) and p(attributes|z).
        image: Name of the image modality.
        attributes: Name of the attributes modality.
        column: Which attribute is the label; of the others nothing is learnt.
        l2_attributes_decoder: See :class:`WithoutNoise`.
    """

    selects = "accuracy"

    def __init__(
        self, model: Model, image: str, attributes: str, column: int, l2_attributes_decoder: float = 0.0
    ) -> None:
        super().__init__(model, image, attributes, l2_attributes_decoder)
        self.column = column

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return log p(label | image) in nats [B]."""
        known = batch.present[self.generated]
        alone = torch.zeros_like(known)
        alone[:, self.column] = known[:, self.column]
        table = self.model.label_log_probabilities(self.generated, batch, (self.image,))
        if table is None:
            return super().forward(Batch(batch.values, {**batch.present, self.generated: alone}), step)
        of_codes = table.gather(-1, batch.values[self.generated].unsqueeze(-1)).squeeze(-1)
        value = of_codes.masked_fill(~alone, 0.0).sum(-1)
        return Bound(value, {f"log p({self.generated}|image)": value})

    def said(self, batch: Batch) -> Tensor:
        """Predict the likeliest codes [B, A]."""
        table = self.model.label_log_probabilities(self.generated, batch, (self.image,))
        if table is None:
            table = self.model.mean(self.generated, self.model.means(batch, (self.image,)))
        return table.argmax(-1)

    def validate(self, batch: Batch) -> dict[str, Tensor]:
        """Return the accuracy [B]: 1 where the label is right or unknown, else 0."""
        said = self.said(batch)
        wrong = (said != batch.values[self.generated]) & batch.present[self.generated]
        return {"accuracy": (~wrong[:, self.column]).float()}


class Supervised(LabelReader):
    """Image encoder, z without noise, label decoder (WG Section 5.1, baseline 1); initial weights as the others'.

    Beside a semi-supervised model it is that model's own q(y|x), trained on the labelled images alone.
    """

    networks = True

    def read(self, labels: LabelSupply) -> Generator[float, None, tuple[NDArray[np.int64], dict[str, Any]]]:
        material = self.material
        image, attributes = material.image.name, material.attributes.name
        model = model_of_images(material, attributes)
        decay = material.settings.model.l2_attributes_decoder
        task = _Reading(model, image, attributes, material.column, decay)
        facts = yield from fit(task, material.pairs(labels), material)
        rows = material.rows("test")
        said = []
        with torch.inference_mode():
            for chunk in torch.arange(len(rows)).split(_CHUNK):
                said.append(task.said(rows.batch(chunk))[:, material.column].cpu().numpy())
        return np.concatenate(said), {"step": facts["step"], "validation_accuracy": 100 * facts["validation_accuracy"]}
