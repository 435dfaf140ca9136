"""Semi-supervised training data: a fixed, class-balanced choice of examples keeps its label, all others lose theirs.

References:
    Semi-Supervised Learning with Deep Generative Models (Kingma, Rezende, Mohamed, Welling, 2014), arXiv:1406.5298,
    Section 4.1: labels are chosen at random so that all classes are equally often among them
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.core.errors import DataError, SettingsError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.modalities.attributes import AttributesDescription
from mmgen.training.batches import DatasetRows, MaskedRows, Rows, supervised_row_count

if TYPE_CHECKING:
    from mmgen.models import DataSettings
    from mmgen.objectives import Objective


def choose_labelled_examples(codes: NDArray[np.uint8], count: int, seed: int) -> NDArray[np.int64]:
    """Choose at random the ``count`` examples that keep their label, equally many of each class; return their indices.

    Combinations of values take turns, so that their counts differ by one at most while examples last. A smaller count
    is the beginning of a larger one. Examples without all of their attributes are never chosen.

    Args:
        codes: Attributes of the N training examples [N, A], 255 unknown.
        count: Number of examples to choose.
        seed: Seed of the choice.

    Raises:
        DataError: Fewer examples have a complete label.

    Example:
        >>> codes = np.array([[0], [0], [0], [1], [1], [255]], np.uint8)
        >>> chosen = choose_labelled_examples(codes, 4, seed=0)
        >>> sorted(codes[chosen, 0].tolist())
        [0, 0, 1, 1]
    """
    complete = np.flatnonzero((codes != UNKNOWN).all(1))
    if count > len(complete):
        raise DataError(
            f"data.labelled got {count:,}, but {len(complete):,} of {len(codes):,} training examples have a complete "
            "label; choose fewer"
        )
    generator = numpy_generator(seed, "labelled")
    shuffled = generator.permutation(len(codes))
    shuffled = shuffled[np.isin(shuffled, complete)]
    _, combinations = np.unique(codes[shuffled], axis=0, return_inverse=True)
    combinations = combinations.reshape(-1)
    # Round-robin over combinations of values: sort by rank within each combination.
    turn = np.empty(len(shuffled), np.int64)
    for combination in range(int(combinations.max()) + 1 if len(combinations) else 0):
        places = np.flatnonzero(combinations == combination)
        turn[places] = np.arange(len(places))
    return shuffled[np.lexsort((np.arange(len(shuffled)), turn))][:count].astype(np.int64)


def read_codes(rows: DatasetRows, name: str) -> NDArray[np.uint8]:
    """Read the attribute codes of all rows [N, A], 255 unknown."""
    codes: NDArray[np.uint8] = rows.read_stored(name, torch.arange(len(rows))).cpu().numpy()
    return codes


class LabelledRows(MaskedRows):
    """Training rows for few labels: labelled examples, repeated up to their share, then all others without label.

    Args:
        rows: Whole examples.
        labelled: Indices of the examples that keep their label.
        label_names: Modalities that the others lose.
        share: Smallest share of labelled examples in training; None draws every example equally often.
        with_unlabelled: Whether the other examples have rows.
    """

    def __init__(
        self,
        rows: Rows,
        labelled: NDArray[np.int64],
        label_names: Collection[str],
        share: float | None = None,
        with_unlabelled: bool = True,
    ) -> None:
        rest = np.setdiff1d(np.arange(len(rows)), labelled) if with_unlabelled else np.empty(0, np.int64)
        self.labelled, self.unlabelled = len(labelled), len(rest)
        self.labelled_rows = supervised_row_count(len(labelled), len(rest), share)
        is_labelled = np.arange(self.labelled_rows + len(rest)) < self.labelled_rows
        super().__init__(
            rows,
            np.concatenate([np.resize(labelled, self.labelled_rows), rest]),
            dict.fromkeys(label_names, is_labelled),
        )


def learns_unlabelled(objective: "Objective") -> bool:
    """Return True if an objective also learns from examples without a description."""
    return "subsets" in objective.demands.needs or bool(objective.demands.marginalises)


def _label_attributes(objective: "Objective", data: "DataSettings") -> AttributesDescription | None:
    """Return the attributes that the objective uses as labels; None if it uses none."""
    named = data.modalities_of_class(AttributesDescription)
    return next((named[name] for name in objective.demands.modalities if name in named), None)


def label_seed(data: "DataSettings", seed: int) -> int:
    """Return the seed that chooses the labelled examples: ``data.labelled_seed``, else the seed of the training."""
    return seed if data.labelled_seed is None else data.labelled_seed


def check_labelled(data: "DataSettings") -> None:
    """Refuse settings that combine several kinds of weak supervision, or lack the one that they refine.

    Raises:
        SettingsError: Two kinds are set, or ``labelled_share`` or ``labelled_seed`` without ``labelled``.
    """
    if data.labelled is None:
        for name in ("labelled_share", "labelled_seed"):
            if (got := getattr(data, name)) is not None:
                raise SettingsError(
                    f"data.{name} got {got:g}, but data.labelled, the number of labelled examples, is not set; set both"
                )
        return
    if data.paired != 1 or data.least_paired_share is not None:
        raise SettingsError(
            f"data.labelled got {data.labelled:,} and data.paired {data.paired:g}, expected one of both, since each "
            "hides descriptions; leave one out"
        )


def examples_with_label(
    rows: DatasetRows, objective: "Objective", data: "DataSettings", seed: int
) -> NDArray[np.int64] | None:
    """Return indices of the training examples that keep their label; None if all keep it or none is used.

    Args:
        rows: The training part of a split.
        objective: What is maximised.
        data: ``labelled`` and ``labelled_seed`` are read.
        seed: Seed of the training, by which labels are chosen where the data say no seed of their own.

    Raises:
        DataError: There are not so many examples with a label.
    """
    labels = _label_attributes(objective, data)
    if data.labelled is None or labels is None:
        return None
    return choose_labelled_examples(read_codes(rows, labels.name), data.labelled, label_seed(data, seed))


def make_labelled_rows(rows: DatasetRows, objective: "Objective", data: "DataSettings", seed: int) -> Rows:
    """Return the training rows for ``data.labelled``: few examples with their label, all others without.

    Objectives that learn from pictures alone get the labelled examples and all others without their label; those that
    need the label get only the labelled ones; those without attributes get all examples unchanged.

    Args:
        rows: The training part of a split.
        objective: What is maximised.
        data: ``labelled``, ``labelled_seed`` and ``labelled_share`` are read.
        seed: Seed of the training, by which labels are chosen where the data say no seed of their own.

    Raises:
        DataError: There are not so many examples with a label.
    """
    labelled = examples_with_label(rows, objective, data, seed)
    if labelled is None:
        return rows
    hidden = [name for name, each in data.modalities.items() if each.describes]
    return LabelledRows(rows, labelled, hidden, data.labelled_share, with_unlabelled=learns_unlabelled(objective))


def describe_labelled(size: int, objective: "Objective", data: "DataSettings") -> str:
    """Describe in one sentence how many of ``size`` training examples are labelled; "" if all are.

    Raises:
        SettingsError: See :func:`check_labelled`.
        DataError: There are fewer examples than labels.
    """
    check_labelled(data)
    count, share, labels = data.labelled, data.labelled_share, _label_attributes(objective, data)
    if count is None:
        return ""
    if count > size:
        raise DataError(f"data.labelled got {count:,}, expected at most the {size:,} training examples; choose fewer")
    if labels is None:
        settings = "labels change" if share is None else "labels and data.labelled_share change"
        return f"This objective uses {' and '.join(objective.demands.modalities)} alone, so {settings} nothing."
    draw = "of training.seed" if data.labelled_seed is None else str(data.labelled_seed)
    sentence = (
        f"{count:,} of {size:,} training examples are labelled, balanced over {', '.join(labels.names)} (draw {draw})"
    )
    missing_values = "".join(
        f" At least {len(values) - count} of the {len(values)} values of {name} have no label."
        for name, values in zip(labels.names, labels.values, strict=True)
        if count < len(values)
    )
    if not learns_unlabelled(objective):
        return (
            f"{sentence}; this objective needs labels and leaves the other {size - count:,} out (semi-supervised and "
            f"mvae learn from them too){'' if share is None else ', so data.labelled_share changes nothing'}."
            f"{missing_values}"
        )
    rows_labelled = supervised_row_count(count, size - count, share)
    repetition = ""
    if rows_labelled > count:
        repetition = (
            f"; they are repeated {_format_factor(rows_labelled / count)} times, until they are "
            f"{100 * rows_labelled / (rows_labelled + size - count):.3g} % of what is drawn, and weigh as much more"
        )
    elif share is not None:
        repetition = "; data.labelled_share changes nothing, as they are at least that part of these rows"
    return f"{sentence}{repetition}.{missing_values}"


def _format_factor(ratio: float) -> str:
    """Format how many times more often labelled examples are drawn."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
