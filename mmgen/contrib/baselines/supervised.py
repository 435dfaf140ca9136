"""A network from image to label with the joint model's layers, trained on the pairs alone."""

from collections.abc import Generator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.contrib.baselines._base import LabelReader, LabelSupply, NoiselessTask, build_image_model, train_task
from mmgen.core.batch import Batch
from mmgen.models import Model
from mmgen.objectives import Bound
from mmgen.training.task import ALONE

__all__ = ["Supervised"]

_CHUNK = 1000


class _LabelTask(NoiselessTask):
    """Training task that maximises log p(label | image); the validation accuracy stops it.

    Args:
        model: The model of q(z|x) and p(attributes|z).
        image: Name of the image modality.
        attributes: Name of the attributes modality.
        column: Column of the attribute that is the label; the others are ignored.
        l2_attributes_decoder: See :class:`NoiselessTask`.
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

    def predict(self, batch: Batch) -> Tensor:
        """Predict the most probable code [B, A] of each attribute."""
        table = self.model.label_log_probabilities(self.generated, batch, (self.image,))
        if table is None:
            table = self.model.mean(self.generated, self.model.means(batch, (self.image,)))
        return table.argmax(-1)

    def validate(self, batch: Batch) -> dict[str, Tensor]:
        """Return the accuracy of each example [B]: 1 where the label is predicted or unknown, else 0."""
        predicted = self.predict(batch)
        wrong = (predicted != batch.values[self.generated]) & batch.present[self.generated]
        return {"accuracy": (~wrong[:, self.column]).float()}


class Supervised(LabelReader):
    """The joint model's image encoder and attribute decoder, trained on labelled images (WG Section 5.1, baseline 1).

    Beside a semi-supervised model it is that model's own q(y|x), trained on the labelled images alone.
    """

    networks = True

    def predict_test_labels(
        self, labels: LabelSupply
    ) -> Generator[float, None, tuple[NDArray[np.int64], dict[str, Any]]]:
        material = self.data
        image, attributes = material.image.name, material.attributes.name
        model = build_image_model(material, attributes)
        decay = material.settings.model.l2_attributes_decoder
        task = _LabelTask(model, image, attributes, material.column, decay)
        facts = yield from train_task(task, material.labelled_rows(labels), material)
        rows = material.rows("test")
        predicted = []
        with torch.inference_mode():
            for chunk in torch.arange(len(rows)).split(_CHUNK):
                predicted.append(task.predict(rows.batch(chunk))[:, material.column].cpu().numpy())
        return np.concatenate(predicted), {
            "step": facts["step"],
            "validation_accuracy": 100 * facts["validation_accuracy"],
        }
