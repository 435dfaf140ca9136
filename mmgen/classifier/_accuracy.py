"""Accuracy of a classifier on held-out images."""

import math
from dataclasses import dataclass, field

import torch

from mmgen.classifier._classifier import Classifier
from mmgen.core.notation import UNKNOWN
from mmgen.results.number import Number
from mmgen.results.standard_errors import binomial_error
from mmgen.training.batches import Rows

__all__ = ["Accuracy", "count_confusions", "measure_accuracy"]

_CHUNK = 2048


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of an attribute classifier, as numbers of correct predictions and of images for each attribute.

    Attributes:
        correct: Correct predictions.
        images: Images whose attribute is known.
        hints: Number of further attributes that the classifier received as input.
        commonest: Images with the commonest value of each attribute: what a constant answer gets right.
        balanced: Mean over an attribute's values of the percentage of images with this value that are read correctly;
            a constant answer gets 100 % divided by the number of values, however common its value is.
    """

    correct: dict[str, int]
    images: dict[str, int]
    hints: int = 0
    commonest: dict[str, int] = field(default_factory=dict)
    balanced: dict[str, float] = field(default_factory=dict)

    @property
    def base_rates(self) -> dict[str, float]:
        """Percentage of images with the commonest value, by attribute, and the mean over them as "mean"."""
        each = {name: 100.0 * number / max(1, self.images[name]) for name, number in self.commonest.items()}
        return each | ({"mean": sum(each.values()) / len(each)} if each else {})

    @property
    def percent(self) -> dict[str, float]:
        """Accuracy in percent by attribute, and the mean over them as "mean".

        A classifier that reads known attributes has "words" too: the share of all words that match, the known ones
        among them, as correctness counts them (CK 5.4).
        """
        each = {name: 100.0 * self.correct[name] / max(1, self.images[name]) for name in self.correct}
        mean = sum(each.values()) / len(each)
        words = {"words": (sum(each.values()) + 100.0 * self.hints) / (len(each) + self.hints)} if self.hints else {}
        return each | {"mean": mean} | words

    @property
    def stderr(self) -> dict[str, float]:
        """Standard errors of :attr:`percent`, binomial and never 0, as if attributes were independent."""
        each = {name: binomial_error(self.percent[name], max(1, self.images[name])) for name in self.correct}
        whole = math.hypot(*each.values())
        words = {"words": whole / (len(each) + self.hints)} if self.hints else {}
        return each | {"mean": whole / len(each)} | words

    @property
    def numbers(self) -> dict[str, Number]:
        """The accuracies of :attr:`percent` with their standard errors, as tables print them."""
        errors = self.stderr
        return {name: Number(value, errors[name], "%") for name, value in self.percent.items()}


def measure_accuracy(
    classifier: Classifier, rows: Rows, image: str = "image", attributes: str = "attributes"
) -> Accuracy:
    """Measure the accuracy of a classifier on all examples of ``rows``."""
    tables = count_confusions(classifier, rows, image, attributes)
    of_values = {name: table.sum(1) for name, table in tables.items()}
    balanced = {}
    for name, table in tables.items():
        occurring = of_values[name] > 0
        shares = table.diag()[occurring].double() / of_values[name][occurring]
        balanced[name] = 100.0 * float(shares.mean()) if len(shares) else 0.0
    balanced["mean"] = sum(balanced.values()) / len(balanced)
    return Accuracy(
        {name: int(table.diag().sum()) for name, table in tables.items()},
        {name: int(table.sum()) for name, table in tables.items()},
        len(classifier.hints),
        {name: int(count.max()) for name, count in of_values.items()},
        balanced,
    )


def count_confusions(
    classifier: Classifier, rows: Rows, image: str = "image", attributes: str = "attributes"
) -> dict[str, torch.Tensor]:
    """Return a confusion matrix int64 [V, V] for each predicted attribute: true values as rows, predictions as columns.

    Examples whose attribute is unknown do not count.
    """
    counts = {
        index: torch.zeros(len(classifier.values[index]), len(classifier.values[index]), dtype=torch.int64)
        for index in classifier.predicted
    }
    for indices in torch.arange(len(rows)).split(_CHUNK):
        batch = rows.batch(indices)
        present = batch.present[attributes]
        codes = batch.values[attributes].masked_fill(~present, UNKNOWN)
        predictions = classifier.predict(batch.values[image], codes).long()
        for index, table in counts.items():
            known = present[:, index]
            cells = codes[known, index].long() * len(table) + predictions[known, index]
            table += torch.bincount(cells.cpu(), minlength=table.numel()).reshape(table.shape)
    return {classifier.names[index]: table for index, table in counts.items()}
