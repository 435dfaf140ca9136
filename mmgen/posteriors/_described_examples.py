"""The examples whose description the training of a model used; a fit uses no others.

A fitted density is compared with posteriors that were trained with few labels or few pairs, so it must not see more of
them. Validation keeps its descriptions, as in training.
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
from mmgen.training.batches import DatasetRows, supervised_row_count
from mmgen.training.labelling import learns_unlabelled
from mmgen.training.model_run import ExperimentSettings
from mmgen.training.pairing import examples_with_description

_LEAST = 2
"""Smallest number of described examples of a fit: a single one has no distribution."""


class Fit(Protocol):
    """Protocol of the parts of :class:`mmgen.posteriors.FitSettings` that this module reads."""

    @property
    def aggregate(self) -> Any:
        """Settings of the density, with ``given`` and ``examples``."""

    @property
    def data(self) -> DataSettings:
        """Settings of the model's data."""

    def build_target(self) -> Target:
        """Build the target that the settings name."""


@dataclass(frozen=True)
class DescribedExamples:
    """Training examples whose description the model was trained with.

    Attributes:
        size: Number of training examples.
        rows: The described ones, as sorted rows of the dataset; None if all are described.
        uses_undescribed: Whether training also used the others, without their description.
        share: Smallest share of described examples in training, to which they were repeated; None without repeats.
    """

    size: int
    rows: NDArray[np.int64] | None
    uses_undescribed: bool
    share: float | None

    @property
    def described_count(self) -> int:
        """Number of described examples."""
        return self.size if self.rows is None else len(self.rows)

    def contains(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each row of the dataset whether training used its description."""
        return np.ones(len(rows), np.bool_) if self.rows is None else np.isin(rows, self.rows)


def hides_descriptions(data: DataSettings) -> bool:
    """Return True if training hid the descriptions of some examples (``data.paired``, ``data.labelled``)."""
    return data.labelled is not None or data.paired != 1


def examples_described_in_training(model: ExperimentSettings, dataset: Dataset) -> DescribedExamples:
    """Return which training examples the model was trained on together with their description."""
    data, objective = model.data, model.build_objective()
    size = len(dataset.split(data.split, "train"))
    uses_undescribed = learns_unlabelled(objective)
    share = data.labelled_share if data.labelled is not None else data.least_paired_share
    if not hides_descriptions(data):
        return DescribedExamples(size, None, uses_undescribed, share)
    words = [name for name, each in data.modalities.items() if each.describes]
    rows = DatasetRows.open_split(dataset, data.split, "train", torch.device("cpu"), words)
    described = examples_with_description(rows, objective, data, model.training.seed)
    return DescribedExamples(
        size, None if described is None else np.sort(rows.rows[described]), uses_undescribed, share
    )


def read_described_codes(model: ExperimentSettings, dataset: Dataset) -> NDArray[np.uint8]:
    """Return the attribute codes uint8 [M, A] of the training examples whose description the training used."""
    assert model.data.attributes is not None
    described, split = examples_described_in_training(model, dataset), model.data.split
    rows = dataset.split(split, "train") if described.rows is None else described.rows
    return dataset.read_attributes(model.data.attributes.name, rows)


def needs_descriptions(data: DataSettings, inputs: Sequence[str], examples: DescribedExamples) -> bool:
    """Return True if encoding an example needs its description, as q(z | image, attributes) of TELBO does.

    Sentences in several languages are all descriptions, so that nothing is left to encode without them.
    """
    described = [data.modalities[name].describes for name in inputs]
    return any(described) and (all(described) or not examples.uses_undescribed)


def learns_from_undescribed(settings: Fit, examples: DescribedExamples) -> bool:
    """Return True if a fit also learns from encodings without a description, as q(z) does."""
    options = settings.aggregate
    if options.given == "nothing":
        return True
    return options.given == "attributes" and settings.build_target().learns_unlabelled and examples.uses_undescribed


def training_positions(
    rows: NDArray[np.int64], is_validation: NDArray[np.bool_], settings: Fit, examples: DescribedExamples
) -> NDArray[np.int64]:
    """Return positions of the encodings to learn from; described ones are repeated as often as in training."""
    if settings.aggregate.given == "nothing" or examples.rows is None:
        return np.flatnonzero(~is_validation)
    known = examples.contains(rows)
    described, others = np.flatnonzero(~is_validation & known), np.flatnonzero(~is_validation & ~known)
    if not learns_from_undescribed(settings, examples):
        return described
    repeated = np.resize(described, supervised_row_count(len(described), len(others), examples.share))
    return np.concatenate([repeated, others])


def check_described(examples: DescribedExamples, settings: Fit, needs_descriptions: bool) -> str:
    """Refuse a fit with too few described examples; return a sentence on their number, "" if all are described.

    Raises:
        DataError: There are fewer than two.
    """
    if examples.rows is None:
        return ""
    options = settings.aggregate
    number_in_words = f"{min(examples.described_count, options.examples):,} of {examples.size:,} training examples"
    reads = options.given != "nothing"
    if (reads or needs_descriptions) and examples.described_count < _LEAST:
        way = "use --given nothing" if reads and not needs_descriptions else "fit to a model that was trained with more"
        raise DataError(
            f"this fit has the descriptions of only {number_in_words}, since the model was trained with no others, "
            f"expected at least {_LEAST}; {way}"
        )
    if not reads:
        sentence = (
            f"This fit has {number_in_words}: encodings of this model need descriptions, and its training used no "
            "others."
        )
        return sentence if needs_descriptions else ""
    others = (
        "learns from the others without theirs"
        if learns_from_undescribed(settings, examples)
        else "leaves the others out"
    )
    return (
        f"This fit is given the descriptions of {number_in_words}, those that the model was trained with, and {others}."
    )
