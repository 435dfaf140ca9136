"""Rows of weak supervision: examples, each with a mask of the modalities that training sees of it."""

from collections.abc import Collection, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.training.batches import Rows

__all__ = ["MaskedRows", "supervised_row_count", "without"]


class MaskedRows(Rows):
    """Rows of examples with modalities hidden: hidden ones are not present and have the value 0.

    Args:
        rows: Whole examples.
        example: Example of each row [R]; one example may have several rows or none.
        shows: For modalities that some rows hide, whether each row shows them, bool [R].
        others: The same for all modalities that ``shows`` does not name; None shows them everywhere.
    """

    def __init__(
        self,
        rows: Rows,
        example: NDArray[np.int64],
        present: Mapping[str, NDArray[np.bool_]],
        default: NDArray[np.bool_] | None = None,
    ) -> None:
        self.rows, self.origin, self.together = rows, rows.origin, rows.together
        self._example = torch.from_numpy(example.astype(np.int64))
        self._shows = {name: torch.from_numpy(mask) for name, mask in present.items()}
        self._others = None if default is None else torch.from_numpy(default)

    def __len__(self) -> int:
        return len(self._example)

    def batch(self, indices: Tensor) -> Batch:
        indices_here = indices.cpu()
        return self._masked(self.rows.batch(self._example[indices_here]), indices_here)

    def view(self, indices: Tensor, seed: int, *view: str | int) -> Batch:
        chosen = indices.cpu()
        return self._masked(self.rows.view(self._example[chosen], seed, *view), chosen)

    def _masked(self, batch: Batch, indices: Tensor) -> Batch:
        for name in batch.values:
            if (shows := self._shows.get(name, self._others)) is not None:
                batch = without(batch, (name,), shows[indices])
        return batch


def without(whole: Batch, hidden: Collection[str], shows: Tensor) -> Batch:
    """Hide modalities of some examples of a batch: values become 0 and are marked as not present.

    Args:
        whole: B examples.
        hidden: Modalities to hide; those that the examples lack are ignored.
        shows: Examples that show them nevertheless, bool [B].
    """
    shows = shows.to(whole.device)
    values, present = dict(whole.values), dict(whole.present)
    for name in set(hidden) & values.keys():
        values[name] = values[name].masked_fill(~_spread(shows, values[name]), 0)
        present[name] = present[name] & _spread(shows, present[name])
    return Batch(values, present, whole.shared)


def supervised_row_count(count: int, unsupervised: int, share: float | None) -> int:
    """Return how many rows R repeat ``count`` supervised examples so that they make up at least ``share``.

    Without a share it is ``count``.

    Example:
        >>> supervised_row_count(100, 59_900, 0.5), supervised_row_count(100, 59_900, None)
        (59900, 100)
    """
    wanted = 0 if share is None or not count else round(share / (1 - share) * unsupervised)
    return max(count, wanted)


def _spread(mask: Tensor, like: Tensor) -> Tensor:
    """Reshape [B] to [B, 1, ...] with as many axes as ``like``."""
    return mask.view(-1, *[1] * (like.ndim - 1))
