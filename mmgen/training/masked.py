"""Rows of weak supervision: examples with some of their modalities hidden from training."""

from collections.abc import Collection, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.training.batches import Rows

__all__ = ["MaskedRows", "supervised_row_count", "hide_modalities"]


class MaskedRows(Rows):
    """Training rows in which modalities of some rows are hidden: absent, with the value 0.

    Args:
        rows: Whole examples.
        examples: Index of the example of each row [R]; an example may have several rows or none.
        present: For modalities that some rows hide, whether each row shows them, bool [R].
        default: The same for all other modalities; None shows them in all rows.
    """

    def __init__(
        self,
        rows: Rows,
        examples: NDArray[np.int64],
        present: Mapping[str, NDArray[np.bool_]],
        default: NDArray[np.bool_] | None = None,
    ) -> None:
        self.rows, self.origin, self.validation_batch = rows, rows.origin, rows.validation_batch
        self._example = torch.from_numpy(examples.astype(np.int64))
        self._is_shown = {name: torch.from_numpy(mask) for name, mask in present.items()}
        self._default_is_shown = None if default is None else torch.from_numpy(default)

    def __len__(self) -> int:
        return len(self._example)

    def batch(self, indices: Tensor) -> Batch:
        positions = indices.cpu()
        return self._apply_masks(self.rows.batch(self._example[positions]), positions)

    def view(self, indices: Tensor, seed: int, *view: str | int) -> Batch:
        positions = indices.cpu()
        return self._apply_masks(self.rows.view(self._example[positions], seed, *view), positions)

    def _apply_masks(self, batch: Batch, indices: Tensor) -> Batch:
        """Hide the modalities that the rows at ``indices`` hide."""
        for name in batch.values:
            if (is_shown := self._is_shown.get(name, self._default_is_shown)) is not None:
                batch = hide_modalities(batch, (name,), is_shown[indices])
        return batch


def hide_modalities(batch: Batch, names: Collection[str], is_shown: Tensor) -> Batch:
    """Hide modalities of some examples of a batch: values become 0 and count as absent.

    Args:
        batch: B examples.
        names: Modalities to hide; those that the batch lacks are ignored.
        is_shown: Whether each example shows them nevertheless, bool [B].
    """
    is_shown = is_shown.to(batch.device)
    values, present = dict(batch.values), dict(batch.present)
    for name in set(names) & values.keys():
        values[name] = values[name].masked_fill(~_broadcast(is_shown, values[name]), 0)
        present[name] = present[name] & _broadcast(is_shown, present[name])
    return Batch(values, present, batch.shared)


def supervised_row_count(count: int, unsupervised: int, share: float | None) -> int:
    """Return the number of rows of ``count`` supervised examples when repeated to a ``share`` of all rows.

    Without a share it is ``count``.

    Example:
        >>> supervised_row_count(100, 59_900, 0.5), supervised_row_count(100, 59_900, None)
        (59900, 100)
    """
    needed = 0 if share is None or not count else round(share / (1 - share) * unsupervised)
    return max(count, needed)


def _broadcast(mask: Tensor, like: Tensor) -> Tensor:
    """Reshape a mask [B] to [B, 1, ...] with as many axes as ``like``."""
    return mask.view(-1, *[1] * (like.ndim - 1))
