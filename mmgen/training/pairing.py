"""Weak supervision: a share of the training examples stays whole, the rest is taken apart into its modalities.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5.1: a fraction of the dataset is reserved as multi-modal examples; the rest is split into one dataset per
    modality, and these are shuffled to destroy any pairing
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import DataError, SettingsError
from mmgen.core.seeding import numpy_generator
from mmgen.training.batches import DatasetRows, Rows
from mmgen.training.labelling import check_labelled, describe_labelled, kept_labels, labelled_rows

if TYPE_CHECKING:
    from mmgen.models import DataSettings
    from mmgen.objectives import Objective

__all__ = [
    "PairedRows",
    "describe_rows",
    "described_examples",
    "drawn_share",
    "paired_count",
    "paired_examples",
    "training_rows",
]

_WHOLE = -1


def paired_count(size: int, share: float) -> int:
    """N_p, how many of ``size`` examples stay paired: the nearest whole number.

    Raises:
        DataError: A share above nothing leaves no example.

    Example:
        >>> paired_count(60000, 0.001)
        60
    """
    count = round(share * size)
    if share > 0 and count == 0 and size:
        raise DataError(
            f"data.paired got {share:g}, which of {size:,} training examples is none, expected at least "
            f"{1 / size:.2g}; choose a larger share, or 0 for no pairs at all"
        )
    return count


def paired_examples(size: int, share: float, seed: int) -> NDArray[np.int64]:
    """Which of ``size`` examples stay paired [N_p], at random; a smaller share is the beginning of a larger one.

    Args:
        size: Number of training examples N.
        share: Part of them, from 0 to 1.
        seed: Seed of the training.
    """
    return numpy_generator(seed, "paired").permutation(size)[: paired_count(size, share)]


class PairedRows(Rows):
    """Rows of which a share is whole; every other example becomes one row for each of its modalities, shuffled apart.

    The whole rows come first, then those of each modality in turn. In a row of one modality the others are not present
    and their values are 0. Which picture and which description were one example cannot be told from the row numbers.

    Args:
        rows: Whole examples.
        apart: Modalities of which the other examples leave one row each; none leaves the other examples out.
        share: Part of the examples that stays whole.
        seed: Seed of the training.
        drawn: Least part of the draws that are whole examples: they are repeated until they are that part of the rows.
            None draws every row equally often, as the paper does.
    """

    def __init__(self, rows: Rows, apart: Sequence[str], share: float, seed: int, drawn: float | None = None) -> None:
        size = len(rows)
        order = numpy_generator(seed, "paired").permutation(size)
        count = paired_count(size, share)
        whole, rest = order[:count], np.sort(order[count:])
        self.rows, self.origin = rows, rows.origin
        self.apart = tuple(apart)
        self.paired = count
        self.left = len(rest)
        others = len(rest) * len(self.apart)
        repeated = np.resize(whole, _whole_rows(count, others, drawn))
        parts = [repeated, *(numpy_generator(seed, "apart", name).permutation(rest) for name in self.apart)]
        self._example = torch.from_numpy(np.concatenate(parts).astype(np.int64))
        kinds = [np.full(len(repeated), _WHOLE, np.int8)]
        kinds += [np.full(len(rest), number, np.int8) for number in range(len(self.apart))]
        self._kind = torch.from_numpy(np.concatenate(kinds))

    def __len__(self) -> int:
        return len(self._example)

    def batch(self, indices: Tensor) -> Batch:
        chosen = indices.cpu()
        return self._apart(self.rows.batch(self._example[chosen]), self._kind[chosen])

    def sight(self, indices: Tensor, seed: int, *sight: str | int) -> Batch:
        chosen = indices.cpu()
        return self._apart(self.rows.sight(self._example[chosen], seed, *sight), self._kind[chosen])

    def _apart(self, whole: Batch, kind: Tensor) -> Batch:
        """Whole examples without the modalities that rows of their kind have lost."""
        kind = kind.to(whole.device)
        values, present = {}, {}
        for name, value in whole.values.items():
            kept = kind == _WHOLE
            if name in self.apart:
                kept = kept | (kind == self.apart.index(name))
            values[name] = value.masked_fill(~_spread(kept, value), 0)
            present[name] = whole.present[name] & _spread(kept, whole.present[name])
        return Batch(values, present, whole.shared)


def _whole_rows(count: int, others: int, drawn: float | None) -> int:
    """R, how many rows ``count`` whole examples become beside ``others``: drawn = R / (R + others), or ``count``."""
    wanted = 0 if drawn is None or not count else round(drawn / (1 - drawn) * others)
    return max(count, wanted)


def _spread(mask: Tensor, like: Tensor) -> Tensor:
    """[B] -> [B, 1, ...] with as many axes as ``like``."""
    return mask.view(-1, *[1] * (like.ndim - 1))


def training_rows(rows: Rows, objective: "Objective", data: "DataSettings", seed: int) -> Rows:
    """What an objective trains on where not all examples are paired.

    One that learns from examples that lack modalities (mvae) gets the paired examples and the others taken apart; one
    that needs them whole gets the paired examples alone, as WG train JMVAE; one of a single modality has nothing to
    pair and gets all examples as they are.

    Args:
        rows: The training part of a split.
        objective: What is maximised.
        data: ``paired`` and ``least_paired_share`` are read, and what :mod:`mmgen.training.labelling` reads.
        seed: Seed of the training.

    Raises:
        SettingsError: Examples are to be labelled or paired in rows of which that cannot be said.
    """
    names = objective.demands.modalities
    check_labelled(data)
    if data.labelled is not None:
        if not isinstance(rows, DatasetRows):
            raise SettingsError(
                f"data.labelled got {data.labelled:,}, but labels are chosen among a dataset's own rows and these are "
                f"{type(rows).__name__}; leave it out"
            )
        return labelled_rows(rows, objective, data, seed)
    if data.paired == 1 or len(names) < 2:
        return rows
    joined = [name for name in names if not data.modalities[name].by_rows]
    if joined:
        raise SettingsError(
            f"data.paired got {data.paired:g}, but rows of {joined[0]} belong together and are not taken apart; leave "
            "it out"
        )
    apart = names if "subsets" in objective.demands.needs else ()
    return PairedRows(rows, apart, data.paired, seed, data.least_paired_share)


def described_examples(
    rows: DatasetRows, objective: "Objective", data: "DataSettings", seed: int
) -> NDArray[np.int64] | None:
    """Which examples :func:`training_rows` shows together with their description; None where it keeps none back.

    None is kept back from an objective that looks at no description either: whoever learns one beside its model has
    nothing to be fair to.

    Args:
        rows: The training part of a split.
        objective: What is maximised.
        data: As there.
        seed: Seed of the training.

    Raises:
        DataError: There are not so many examples with a label, or a share above nothing leaves no pair.
    """
    if data.labelled is not None:
        return kept_labels(rows, objective, data, seed)
    names = objective.demands.modalities
    if data.paired == 1 or len(names) < 2 or not any(data.modalities[name].describes for name in names):
        return None
    return paired_examples(len(rows), data.paired, seed)


def drawn_share(size: int, objective: "Objective", data: "DataSettings") -> float | None:
    """``least_paired_share`` where it changes what is drawn from ``size`` training examples, else None.

    It changes nothing where all examples are paired or none is, for an objective that needs whole examples or looks at
    a single modality, and where the paired rows are already that part.
    """
    names = objective.demands.modalities
    if data.paired == 1 or len(names) < 2 or "subsets" not in objective.demands.needs:
        return None
    count = paired_count(size, data.paired)
    repeated = _whole_rows(count, len(names) * (size - count), data.least_paired_share)
    return data.least_paired_share if repeated > count else None


def describe_rows(size: int, objective: "Objective", data: "DataSettings") -> str:
    """One sentence about :func:`training_rows` of ``size`` examples; "" where nothing was asked but to use all whole.

    Raises:
        DataError: No example is left to train on.
    """
    if labelled := describe_labelled(size, objective, data):
        return labelled
    names, wished = objective.demands.modalities, data.least_paired_share is not None
    if data.paired == 1:
        return "All training examples are paired, so data.least_paired_share changes nothing." if wished else ""
    if len(names) < 2:
        changes = "data.paired and data.least_paired_share change" if wished else "data.paired changes"
        return f"This objective looks at {names[0]} alone, so {changes} nothing."
    count = paired_count(size, data.paired)
    left = size - count
    if "subsets" not in objective.demands.needs:
        if data.paired == 0:
            raise DataError("data.paired got 0, but this objective needs paired examples; choose a share above 0")
        return (
            f"This objective needs whole examples: it trains on the {count:,} paired ones and leaves {left:,} out "
            f"(mvae learns from them too){', so data.least_paired_share changes nothing' if wished else ''}."
        )
    drawn = ""
    if (share := drawn_share(size, objective, data)) is not None:
        drawn = f"; the pairs are repeated until they are {100 * share:g} % of what is drawn"
    elif wished:
        there = "they are at least that part of these rows" if count else "there are no pairs"
        drawn = f"; data.least_paired_share changes nothing, as {there}"
    return (
        f"{count:,} of {size:,} training examples stay paired; the others are taken apart into "
        f"{' and '.join(f'{left:,} of {name} alone' for name in names)}{drawn}."
    )
