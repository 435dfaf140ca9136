"""Rows of examples, and batches of them: of a dataset, or with words hidden."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import DataError, UsageError
from mmgen.core.memory import machine_memory
from mmgen.core.seeding import torch_generator
from mmgen.modalities import ROWS, Description, View
from mmgen.modalities.image import ImageDescription

_MEAN_ROWS = 4096
_READ_ROWS = 65536  # rows per read: large enough that decompression dominates, small enough to stay far below the data


class Rows(ABC):
    """Base of training examples that are read in batches, by row number."""

    origin: str = ""
    """Source of the examples, for messages; "" if unknown."""

    validation_batch: int = 512
    """Number of examples in a batch of validation; all if they depend on each other, as the nodes of a graph do."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batch(self, indices: Tensor) -> Batch:
        """Return the examples at ``indices`` (int64 [B], any device); random parts are equal in every call."""

    def view(self, indices: Tensor, seed: int, *view: str | int) -> Batch:
        """Return the examples at ``indices`` with random parts, such as drawn pixels, that ``seed``, ``view`` and row
        determine.

        Rows without random parts are the same in every view.
        """
        return self.batch(indices)


class Order:
    """Order in which a training sees its examples: shuffled epochs without end, as indices by step.

    The order follows from the seed, so that a resumed run needs only its step.

    Args:
        size: Number of examples N.
        batch: Examples per step B.
        seed: Seed of the order.
        stream: Name of the random stream; other names give independent orders.
    """

    def __init__(self, size: int, batch: int, seed: int, stream: str = "order") -> None:
        if size == 0:
            raise DataError(
                "the training part of the split holds no examples, expected at least one; choose another with --split"
            )
        self.size = size
        self.batch = batch
        self.seed = seed
        self.stream = stream
        self._epoch = -1
        self._permutation = torch.empty(0, dtype=torch.int64)

    def _shuffle_epoch(self, epoch: int) -> Tensor:
        """Return the indices of all examples in the order of an epoch."""
        if epoch != self._epoch:
            generator = torch_generator(self.seed, self.stream, epoch, device="cpu")  # one order for all devices
            self._permutation = torch.randperm(self.size, generator=generator)
            self._epoch = epoch
        return self._permutation

    def __getitem__(self, step: int) -> Tensor:
        """Return the indices [B] of the examples of a step; a batch may span two epochs."""
        start, positions, parts = step * self.batch, self.batch, []
        while positions:
            epoch, offset = divmod(start, self.size)
            part = self._shuffle_epoch(epoch)[offset : offset + positions]
            parts.append(part)
            start, positions = start + len(part), positions - len(part)
        return torch.cat(parts)


def make_batch(descriptions: Mapping[str, Description], values: Mapping[str, Tensor]) -> Batch:
    """Make a batch from values by modality: pixels float [B, C, H, W], codes [B, A] (255 unknown), words [B, T].

    Args:
        descriptions: Descriptions of the modalities by name.
        values: Values of the same B examples by name.
    """
    observed = {name: descriptions[name].values_and_presence(value) for name, value in values.items()}
    return Batch(*({name: pair[part] for name, pair in observed.items()} for part in (0, 1)))


class DatasetRows(Rows):
    """Rows of a dataset file.

    They stay on ``device`` as stored (bits or bytes) if they fit into half of its memory; otherwise they are read from
    the file batch by batch, and it stays open. Modalities that are not ``streamed`` are always in memory.

    Args:
        dataset: An open dataset file.
        rows: Row numbers, int64.
        device: Device of batches.
        resident: Whether all rows are in memory; None decides by size.
        modalities: Names of the modalities of batches, by default all; those that are not streamed are always there.
        seed: Seed of random parts in :meth:`batch`, such as drawn pixels.
        part: Part of a split that the rows are; None for other rows.
    """

    def __init__(
        self,
        dataset: Dataset,
        rows: np.ndarray,
        device: torch.device,
        resident: bool | None = None,
        modalities: Collection[str] | None = None,
        seed: int = 0,
        part: str | None = None,
    ) -> None:
        self.dataset, self.seed = dataset, seed
        self.rows = np.sort(rows)
        self.device = device
        # Streamed ones first, then small ones: the order of a batch.
        all_names = sorted(dataset.modalities.items(), key=lambda item: not item[1].streamed)
        self.modalities = {
            name: description
            for name, description in all_names
            if not description.streamed or modalities is None or name in modalities
        }
        streamed = [each for each in self.modalities.values() if each.streamed and each.has_rows]
        stored = sum(_example_bytes(description) for description in streamed)
        self.resident = fits_in_memory(len(rows) * stored, device) if resident is None else resident
        if not self.resident:
            self.dataset = Dataset.open(dataset.path)  # read from as long as these rows live, whoever closes theirs
        self._in_memory = {
            name: torch.from_numpy(self._load_modality(name, description)).to(device)
            for name, description in self.modalities.items()
            if self.resident or not description.streamed or not description.has_rows
        }
        self._shared = {
            f"{name}.{key}": torch.from_numpy(values).to(device)
            for name, description in self.modalities.items()
            for key, values in description.shared_arrays(
                lambda of, array: dataset.read_packed(of, array=array), part
            ).items()
        }
        self.validation_batch = len(self.rows) if self._shared else self.validation_batch

    @classmethod
    def open_split(
        cls,
        dataset: Dataset,
        scheme: str,
        part: str,
        device: torch.device,
        modalities: Collection[str] | None = None,
        real: bool = False,
    ) -> "DatasetRows":
        """Open the rows of one part (train, val, test) of a split; with ``real`` without those that fill gaps.

        Raises:
            UsageError: The scheme divides rows that a modality needs together, such as the nodes of a graph.
        """
        indivisible = [
            n for n, each in dataset.modalities.items() if not each.has_rows and (modalities is None or n in modalities)
        ]
        if indivisible and not dataset.splits_edges(scheme):
            raise UsageError(
                f"split '{scheme}' of {dataset.path} divides the rows, but {indivisible[0]} needs all of them; choose "
                "a split that holds back edges"
            )
        chosen = dataset.split(scheme, part, real)
        rows = cls(dataset, chosen, device, modalities=modalities, part=part)
        rows.origin = f"part '{part}' of split '{scheme}' in {dataset.path}"
        return rows

    def _load_modality(self, name: str, description: Description) -> np.ndarray:
        """Read one modality of all rows in its form in memory; a modality without rows is the row numbers."""
        if not description.has_rows:
            return self.rows
        return description.torch_rows(self._read_in_slices(partial(self.dataset.read_packed, name)))

    def _read_in_slices(self, read_slice: Callable[[slice], np.ndarray]) -> np.ndarray:
        """Read the chosen rows in order by large slices, so that each compressed chunk is read once."""
        parts = []
        for start in range(0, self.dataset.size, _READ_ROWS):
            inside = self.rows[np.searchsorted(self.rows, start) : np.searchsorted(self.rows, start + _READ_ROWS)]
            if len(inside):
                low, high = int(inside[0]), int(inside[-1]) + 1
                parts.append(read_slice(slice(low, high))[inside - low])
        return np.concatenate(parts) if parts else read_slice(slice(0, 0))

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, indices: Tensor) -> Batch:
        return self.view(indices, self.seed)

    def view(self, indices: Tensor, seed: int, *view: str | int) -> Batch:
        values, present = {}, {}
        view_of_rows = View(lambda: torch.from_numpy(self.rows[indices.cpu().numpy()]), (seed, *view))
        for name, description in self.modalities.items():
            values[name], present[name] = description.tensors(self.read_stored(name, indices), view_of_rows)
        return Batch(values, present, self._shared)

    def read_stored(self, name: str, indices: Tensor) -> Tensor:
        """Return the rows of a modality at ``indices`` in stored form (bits, bytes or codes), on the device."""
        if name in self._in_memory:
            return self._in_memory[name].index_select(0, indices.to(self.device))
        return self._read_from_file(name, indices.cpu().numpy()).to(self.device)

    def mean_image(self, name: str) -> Tensor:
        """Return the mean image [C, H, W] of a picture modality in float64; of drawn pixels, the mean probabilities."""
        info = self.modalities[name]
        assert isinstance(info, ImageDescription)
        total = torch.zeros(info.shape, dtype=torch.float64)
        for rows in torch.arange(len(self)).split(_MEAN_ROWS):
            stored = (
                self._in_memory[name][rows[0] : rows[-1] + 1]
                if name in self._in_memory
                else self._read_from_file(name, rows.numpy())
            )
            total += torch.from_numpy(info.unpack(stored.cpu().numpy())).sum(0, dtype=torch.float64)
        return total / (info.scale * len(self))

    def _read_from_file(self, name: str, indices: np.ndarray) -> Tensor:
        # HDF5 needs increasing, distinct rows; the inverse restores the requested order.
        """Read the rows of a modality at ``indices`` from the file."""
        unique, inverse = np.unique(self.rows[indices], return_inverse=True)
        return torch.from_numpy(self.modalities[name].torch_rows(self.dataset.read_packed(name, unique))[inverse])


def _example_bytes(description: Description) -> int:
    """Return the number of bytes that one example of a modality takes in memory."""
    stored = description.arrays()[ROWS]
    return math.prod(stored.shape) * np.dtype(stored.dtype).itemsize


_USUAL_MEMORY = 8 << 30  # bytes, of a machine that does not say


def fits_in_memory(size: int, device: torch.device) -> bool:
    """Return whether ``size`` bytes take less than half of the device's memory."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return size < free // 2
    return size < (machine_memory() or _USUAL_MEMORY) // 2


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
