"""The task of training a classifier, for the common training loop."""

import torch
import torch.nn.functional as F
from torch import Tensor

from mmgen.classifier._augment import Augmentation
from mmgen.classifier._classifier import Classifier
from mmgen.core.batch import Batch
from mmgen.core.notation import UNKNOWN
from mmgen.objectives import Bound
from mmgen.training.task import ALONE, Task

__all__ = ["ClassifierTask", "log_probability"]


def log_probability(logits: list[Tensor], values: Tensor, present: Tensor) -> Tensor:
    """Return log p(attribute | image) in nats [B, A]; 0 where the attribute is unknown."""
    parts = [-F.cross_entropy(part, values[:, index], reduction="none") for index, part in enumerate(logits)]
    return torch.stack(parts, 1).masked_fill(~present, 0.0)


class ClassifierTask(Task):
    """Training task that maximises log p(attributes | image, hints) over the attributes that are known.

    Args:
        classifier: What is trained.
        observed: Name of the modality that it reads.
        attributes: Name of the attributes modality.
        augmentation: Changes of an example that keep its description true, made in training only.
    """

    def __init__(
        self,
        classifier: Classifier,
        observed: str = "image",
        attributes: str = "attributes",
        augmentation: Augmentation | None = None,
    ) -> None:
        super().__init__()
        self.classifier = classifier
        self.observed = observed
        self.quantity = f"log p(labels|{observed})"
        self.attributes = attributes
        self.augmentation = augmentation

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return the log-likelihood of the known attributes [B] in nats, with one term per attribute."""
        images, present = batch.values[self.observed], batch.present[self.attributes]
        codes = batch.values[self.attributes].masked_fill(~present, UNKNOWN)
        if self.augmentation is not None and step is not None:
            images, codes = self.augmentation(images, codes)
        logits = self.classifier(images, codes)
        asked = codes[:, self.classifier.predicted]
        known = asked != UNKNOWN
        parts = log_probability(logits, asked.masked_fill(~known, 0), known)
        names = [self.classifier.names[index] for index in self.classifier.predicted]
        terms = {f"log p({name}|{self.observed})": parts[:, index] for index, name in enumerate(names)}
        return Bound(parts.sum(1), terms, is_bound=True)

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.classifier.network.state_dict())
