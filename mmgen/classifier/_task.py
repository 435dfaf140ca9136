"""Training a classifier: a task for the one training loop."""

import torch
import torch.nn.functional as F
from torch import Tensor

from mmgen.batch import Batch
from mmgen.classifier._classifier import Classifier
from mmgen.objectives._base import Bound
from mmgen.training.task import Task

__all__ = ["ClassifierTask", "log_probability"]


def log_probability(logits: list[Tensor], values: Tensor, present: Tensor) -> Tensor:
    """log p(attribute | image) in nats [B, A]; 0 where the attribute is unknown.

    Args:
        logits: [B, V] per attribute, fp32.
        values: Codes int64 [B, A].
        present: Bool [B, A].
    """
    parts = [-F.cross_entropy(part, values[:, index], reduction="none") for index, part in enumerate(logits)]
    return torch.stack(parts, 1).masked_fill(~present, 0.0)


class ClassifierTask(Task):
    """Maximises log p(attributes | image) over the known attributes.

    Args:
        classifier: What is trained.
        image: Name of the image modality.
        attributes: Name of the attributes modality.
    """

    def __init__(self, classifier: Classifier, image: str = "image", attributes: str = "attributes") -> None:
        super().__init__()
        self.classifier = classifier
        self.image = image
        self.attributes = attributes

    def forward(self, batch: Batch, step: int | None) -> Bound:
        """The log-likelihood of the known labels [B], exact, with one term per attribute."""
        logits = self.classifier(batch.values[self.image])
        parts = log_probability(logits, batch.values[self.attributes], batch.present[self.attributes])
        terms = {f"log p({name}|image)": parts[:, index] for index, name in enumerate(self.classifier.names)}
        return Bound(parts.sum(1), terms, is_bound=True)

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.classifier.network.state_dict())
