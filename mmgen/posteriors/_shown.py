"""Descriptions that training of a model used: a fit never uses more of them than training did.

A fitted density is compared with posteriors that saw few labels or few pairs, so it must not see more of them.
Validation keeps its descriptions, as that of the training does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.artifacts import Dataset
from mmgen.core.errors import DataError
from mmgen.models import DataSettings
from mmgen.posteriors._base import Target
from mmgen.training.batches import DatasetRows
from mmgen.training.labelling import learns_unlabelled
from mmgen.training.masked import supervised_row_count
from mmgen.training.model_run import ExperimentSettings
from mmgen.training.pairing import examples_with_description

__all__ = ["DescribedExamples", "check_described", "fitted_places", "needs_words", "examples_described_in_training"]

_LEAST = 2
"""Described examples that a fit needs: a single one has no distribution."""


class Fit(Protocol):
    """Settings of a fit that are read here; see :class:`mmgen.posteriors.FitSettings`."""

    @property
    def aggregate(self) -> Any:
        """Settings with ``given`` and ``examples``."""

    @property
    def data(self) -> DataSettings:
        """The model's data."""

    def build_target(self) -> Target:
        """Build the target."""


@dataclass(frozen=True)
class DescribedExamples:
    """Training examples that a model saw together with their description.

    Attributes:
        size: N, training examples.
        rows: Those with their description, as sorted rows of the dataset; None where all are.
        alone: Whether training used the others too, without their description.
        share: Least share of the described ones in what it drew, to which they were repeated; None for as they are.
    """

    size: int
    rows: NDArray[np.int64] | None
    alone: bool
    share: float | None

    @property
    def described(self) -> int:
        """Number of examples with their description."""
        return self.size if self.rows is None else len(self.rows)

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True for training rows of the dataset that had their description."""
        return np.ones(len(rows), np.bool_) if self.rows is None else np.isin(rows, self.rows)


def hides_descriptions(data: DataSettings) -> bool:
    """Return True if the settings of a training keep descriptions back."""
    return data.labelled is not None or data.paired != 1


def examples_described_in_training(model: ExperimentSettings, dataset: Dataset) -> DescribedExamples:
    """Return the training examples that a model saw, or would see, with their description."""
    data, objective = model.data, model.build_objective()
    size = len(dataset.split(data.split, "train"))
    alone = learns_unlabelled(objective)
    share = data.labelled_share if data.labelled is not None else data.least_paired_share
    if not hides_descriptions(data):
        return DescribedExamples(size, None, alone, share)
    words = [name for name, each in data.modalities.items() if each.describes]
    rows = DatasetRows.of_split(dataset, data.split, "train", torch.device("cpu"), words)
    described = examples_with_description(rows, objective, data, model.training.seed)
    return DescribedExamples(size, None if described is None else np.sort(rows.rows[described]), alone, share)


def needs_words(data: DataSettings, through: Sequence[str], shown: DescribedExamples) -> bool:
    """Return True if examples can be encoded only with their description, as by q(z | image, attributes) of TELBO."""
    return any(data.modalities[name].describes for name in through) and not shown.alone


def learns_from_others(settings: Fit, shown: DescribedExamples) -> bool:
    """Return True if a fit learns from encodings without a description: q(z), or q(z | nothing known)."""
    options = settings.aggregate
    if options.given == "nothing":
        return True
    return options.given == "attributes" and settings.build_target().learns_unlabelled and shown.alone


def fitted_places(
    rows: NDArray[np.int64], validates: NDArray[np.bool_], settings: Fit, shown: DescribedExamples
) -> NDArray[np.int64]:
    """Return positions of training encodings, described ones repeated as often as in training."""
    if settings.aggregate.given == "nothing" or shown.rows is None:
        return np.flatnonzero(~validates)
    known = shown.of(rows)
    described, others = np.flatnonzero(~validates & known), np.flatnonzero(~validates & ~known)
    if not learns_from_others(settings, shown):
        return described
    repeated = np.resize(described, supervised_row_count(len(described), len(others), shown.share))
    return np.concatenate([repeated, others])


def check_described(shown: DescribedExamples, settings: Fit, needs_words: bool) -> str:
    """Refuse a fit with too few described examples; return a sentence on their number, "" if all are described."""
    if shown.rows is None:
        return ""
    options = settings.aggregate
    examples = f"{min(shown.described, options.examples):,} of {shown.size:,} training examples"
    reads = options.given != "nothing"
    if (reads or needs_words) and shown.described < _LEAST:
        way = "use --given nothing" if reads and not needs_words else "fit to a model that was trained with more"
        raise DataError(
            f"this fit got the descriptions of {examples}, as many as the model was trained with, expected {_LEAST} at "
            f"least; {way}"
        )
    if not reads:
        sentence = (
            f"This fit has {examples}: encodings of this model need descriptions, and its training showed no others."
        )
        return sentence if needs_words else ""
    others = "learns from the others without theirs" if learns_from_others(settings, shown) else "leaves the others out"
    return f"This fit is given the descriptions of {examples}, those that the model was trained with, and {others}."
