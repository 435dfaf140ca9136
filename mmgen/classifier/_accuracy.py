"""How often a classifier is right on images that it has not seen."""

from dataclasses import dataclass

import torch

from mmgen.classifier._classifier import Classifier
from mmgen.training.batches import Rows

__all__ = ["Accuracy", "measure"]

_CHUNK = 2048


@dataclass(frozen=True)
class Accuracy:
    """Correct answers and images by attribute; an image whose attribute is unknown does not count for it."""

    correct: dict[str, int]
    images: dict[str, int]

    @property
    def percent(self) -> dict[str, float]:
        """Accuracy in percent by attribute, and the mean over attributes as "mean"."""
        each = {name: 100.0 * self.correct[name] / max(1, self.images[name]) for name in self.correct}
        return each | {"mean": sum(each.values()) / len(each)}


def measure(classifier: Classifier, rows: Rows, image: str = "image", attributes: str = "attributes") -> Accuracy:
    """Accuracy on all of ``rows``, each image fed as it is in the dataset."""
    correct = torch.zeros(len(classifier.names), dtype=torch.int64)
    known = torch.zeros_like(correct)
    for indices in torch.arange(len(rows)).split(_CHUNK):
        batch = rows.batch(indices)
        right = classifier.predict(batch.values[image]).long() == batch.values[attributes]
        present = batch.present[attributes]
        correct += (right & present).sum(0).cpu()
        known += present.sum(0).cpu()
    return Accuracy(
        dict(zip(classifier.names, correct.tolist(), strict=True)),
        dict(zip(classifier.names, known.tolist(), strict=True)),
    )
