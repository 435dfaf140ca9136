"""Weakly supervised training data: a share of the examples stays whole, the others are split into their modalities.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5.1: a fraction of the dataset is reserved as multi-modal examples; the rest is split into one dataset per
    modality, and these are shuffled to destroy any pairing
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError, SettingsError
from mmgen.core.seeding import numpy_generator
from mmgen.training.batches import DatasetRows, MaskedRows, Rows, supervised_row_count
from mmgen.training.labelling import check_labelled, describe_labelled, examples_with_label, make_labelled_rows

if TYPE_CHECKING:
    from mmgen.models import DataSettings
    from mmgen.objectives import Objective


_WHOLE = ""


def paired_count(size: int, share: float) -> int:
    """Return the number of ``size`` examples that stay paired for a share ``data.paired``, rounded.

    Raises:
        DataError: A share above 0 leaves no example.

    Example:
        >>> paired_count(60000, 0.001)
        60
    """
    count = round(share * size)
    if share > 0 and count == 0 and size:
        raise DataError(
            f"data.paired got {share:g}, which is no whole example of {size:,} training examples, expected at least "
            f"{1 / size:.2g}; choose a larger share, or 0 for no pairs at all"
        )
    return count


def choose_paired_examples(size: int, share: float, seed: int) -> NDArray[np.int64]:
    """Choose at random the examples that stay paired [N_p]; a larger share includes those of a smaller one.

    Args:
        size: Number of training examples N.
        share: Share of them that stays paired, from 0 to 1.
        seed: Seed of the training.
    """
    return numpy_generator(seed, "paired").permutation(size)[: paired_count(size, share)]


class PairedRows(MaskedRows):
    """Training rows for few pairs: paired examples, then each modality of all others in a row of its own, shuffled.

    Row numbers do not reveal which picture and which description belong together.

    Args:
        rows: Whole examples.
        modalities: Modalities into which the other examples are split; without any, the other examples are left out.
        share: Share of the examples that stays whole.
        seed: Seed of the training.
        paired_share: Smallest share of whole examples in training, which are repeated to reach it; None draws every
            row equally often, as the paper does.
    """

    def __init__(
        self, rows: Rows, modalities: Sequence[str], share: float, seed: int, paired_share: float | None = None
    ) -> None:
        order = numpy_generator(seed, "paired").permutation(len(rows))
        count = paired_count(len(rows), share)
        whole, unpaired = order[:count], np.sort(order[count:])
        self.paired, self.unpaired = count, len(unpaired)
        repeated = np.resize(whole, supervised_row_count(count, len(unpaired) * len(modalities), paired_share))
        parts = [repeated, *(numpy_generator(seed, "apart", name).permutation(unpaired) for name in modalities)]
        kind = np.repeat([_WHOLE, *modalities], [len(part) for part in parts])
        is_shown = {name: (kind == _WHOLE) | (kind == name) for name in modalities}
        super().__init__(rows, np.concatenate(parts), is_shown, kind == _WHOLE)


def make_training_rows(rows: Rows, objective: "Objective", data: "DataSettings", seed: int) -> Rows:
    """Return the training rows for ``data.paired`` and ``data.labelled``, by default all rows unchanged.

    Objectives that learn from subsets of modalities (mvae) get the paired examples and the others split; those that
    need whole examples get the paired ones, as WG train JMVAE; those of a single modality get all examples.

    Args:
        rows: The training part of a split.
        objective: The objective.
        data: ``paired`` and ``least_paired_share`` are read, and settings of :mod:`mmgen.training.labelling`.
        seed: Seed of the training.

    Raises:
        SettingsError: The settings are not possible for such rows, such as the nodes of a graph.
    """
    names = objective.demands.modalities
    check_labelled(data)
    if data.labelled is not None:
        if not isinstance(rows, DatasetRows):
            raise SettingsError(
                f"data.labelled got {data.labelled:,}, but labels are chosen among a dataset's own rows and these are "
                f"{type(rows).__name__}; leave it out"
            )
        return make_labelled_rows(rows, objective, data, seed)
    if data.paired == 1 or len(names) < 2:
        return rows
    indivisible = [name for name in names if not data.modalities[name].has_rows]
    if indivisible:
        raise SettingsError(
            f"data.paired got {data.paired:g}, but rows of {indivisible[0]} belong together and cannot be split; leave "
            "it out"
        )
    apart = names if "subsets" in objective.demands.needs else ()
    return PairedRows(rows, apart, data.paired, seed, data.least_paired_share)


def examples_with_description(
    rows: DatasetRows, objective: "Objective", data: "DataSettings", seed: int
) -> NDArray[np.int64] | None:
    """Return the examples that training uses with their description; None if it uses all so, or no descriptions.

    Args:
        rows: The training part of a split.
        objective: The objective.
        data: As for :func:`make_training_rows`.
        seed: Seed of the training.

    Raises:
        DataError: Fewer examples have a label, or a share above 0 leaves no pair.
    """
    if data.labelled is not None:
        return examples_with_label(rows, objective, data, seed)
    names = objective.demands.modalities
    if data.paired == 1 or len(names) < 2 or not any(data.modalities[name].describes for name in names):
        return None
    return choose_paired_examples(len(rows), data.paired, seed)


def effective_paired_share(size: int, objective: "Objective", data: "DataSettings") -> float | None:
    """Return ``least_paired_share`` if it makes training draw paired examples more often; None otherwise.

    It has no effect if all examples are paired or none is, if the objective needs whole examples or uses a single
    modality, and if paired rows already have that share.
    """
    names = objective.demands.modalities
    if data.paired == 1 or len(names) < 2 or "subsets" not in objective.demands.needs:
        return None
    count = paired_count(size, data.paired)
    repeated = supervised_row_count(count, len(names) * (size - count), data.least_paired_share)
    return data.least_paired_share if repeated > count else None


def describe_rows(size: int, objective: "Objective", data: "DataSettings") -> str:
    """Describe in one sentence how many of ``size`` examples stay paired or labelled; "" if all do.

    Raises:
        DataError: No example remains for training.
    """
    if labelled := describe_labelled(size, objective, data):
        return labelled
    names, has_least_share = objective.demands.modalities, data.least_paired_share is not None
    if data.paired == 1:
        return (
            "All training examples are paired, so data.least_paired_share changes nothing." if has_least_share else ""
        )
    if len(names) < 2:
        changes = "data.paired and data.least_paired_share change" if has_least_share else "data.paired changes"
        return f"This objective uses {names[0]} alone, so {changes} nothing."
    count = paired_count(size, data.paired)
    unpaired = size - count
    if "subsets" not in objective.demands.needs:
        if data.paired == 0:
            raise DataError("data.paired got 0, but this objective needs paired examples; choose a share above 0")
        return (
            f"This objective needs whole examples: it trains on the {count:,} paired ones and leaves {unpaired:,} out "
            f"(mvae learns from them too){', so data.least_paired_share changes nothing' if has_least_share else ''}."
        )
    repetition = ""
    if (share := effective_paired_share(size, objective, data)) is not None:
        repetition = f"; the pairs are repeated until they are {100 * share:g} % of what is drawn"
    elif has_least_share:
        reason = "they are at least that part of these rows" if count else "there are no pairs"
        repetition = f"; data.least_paired_share changes nothing, as {reason}"
    return (
        f"{count:,} of {size:,} training examples stay paired; the others are taken apart into "
        f"{' and '.join(f'{unpaired:,} of {name} alone' for name in names)}{repetition}."
    )
