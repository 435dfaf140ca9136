"""Examples in memory as stored bytes, gathered and unpacked in batches on the device; nothing per item in Python."""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from functools import partial

import numpy as np
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.batch import Batch
from mmgen.errors import DataError
from mmgen.notation import UNKNOWN
from mmgen.sights import drawn_pixels, sight_key

__all__ = ["DatasetRows", "Order", "Rows", "to_batch", "unpack_bits"]

_MEAN_ROWS = 4096
_READ_ROWS = 65536  # rows per read: large enough that decompression dominates, small enough to stay far below the data


class Rows(ABC):
    """Examples that a training task can be given by number."""

    origin: str = ""
    """Where they are from, for messages; "" where nobody said."""

    together: int = 512
    """Examples that validation takes at a time; more where they depend on one another, as the nodes of a graph do."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batch(self, indices: Tensor) -> Batch:
        """The examples at ``indices`` (int64 [B], any device); what is drawn anew at every sight is always the same."""

    def sight(self, indices: Tensor, seed: int, *sight: str | int) -> Batch:
        """The examples as they look at one sight, such as a step: what is drawn anew follows from seed, sight and row.

        Rows of which nothing is drawn anew always look the same.
        """
        return self.batch(indices)


class Order:
    """An endless stream of shuffled epochs; any position can be asked for, so resuming needs only the step.

    Args:
        size: Number of examples N.
        batch: Examples per step B.
        seed: Key of the stream.
    """

    def __init__(self, size: int, batch: int, seed: int) -> None:
        if size == 0:
            raise DataError("the training split holds no examples; check --split and the dataset")
        self.size = size
        self.batch = batch
        self.seed = seed
        self._epoch = -1
        self._permutation = torch.empty(0, dtype=torch.int64)

    def _permuted(self, epoch: int) -> Tensor:
        from mmgen.seeding import torch_generator

        if epoch != self._epoch:
            self._permutation = torch.randperm(self.size, generator=torch_generator(self.seed, "order", epoch))
            self._epoch = epoch
        return self._permutation

    def __getitem__(self, step: int) -> Tensor:
        """Indices [B] of step ``step``; a batch may span two epochs."""
        start, wanted, parts = step * self.batch, self.batch, []
        while wanted:
            epoch, offset = divmod(start, self.size)
            part = self._permuted(epoch)[offset : offset + wanted]
            parts.append(part)
            start, wanted = start + len(part), wanted - len(part)
        return torch.cat(parts)


def unpack_bits(packed: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """uint8 [B, ceil(C H W / 8)], first pixel in the highest bit -> float32 [B, C, H, W] of 0 and 1."""
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=packed.device)
    bits = packed.unsqueeze(-1).bitwise_right_shift(shifts).bitwise_and_(1)
    return bits.flatten(1)[:, : math.prod(shape)].reshape(-1, *shape).float()


def to_batch(images: dict[str, Tensor], attributes: dict[str, Tensor], texts: dict[str, Tensor] | None = None) -> Batch:
    """Float images [B, C, H, W], stored attribute codes uint8 [B, A] (255 unknown) and words [B, T] as a batch."""
    values, present = {}, {}
    for name, words in (texts or {}).items():
        values[name] = words.long()
        present[name] = torch.ones(len(words), dtype=torch.bool, device=words.device)
    for name, pixels in images.items():
        values[name] = pixels
        present[name] = torch.ones(len(pixels), dtype=torch.bool, device=pixels.device)
    for name, codes in attributes.items():
        known = codes != UNKNOWN
        values[name] = codes.long().masked_fill(~known, 0)
        present[name] = known
    return Batch(values, present)


class DatasetRows(Rows):
    """Rows of a dataset file.

    They are held on ``device`` as they are stored (bits or bytes) if they fit in half of its memory, and are read from
    the file batch by batch if they do not; it is then kept open.

    Args:
        dataset: An open dataset file.
        rows: Which rows, int64.
        device: Where batches are wanted.
        resident: Whether to hold all rows in memory; None decides by size.
        images: Image modalities that are wanted, all by default; others are neither held nor unpacked.
        seed: Of pixels that are drawn anew at every sight, as :meth:`batch` shows them.
    """

    def __init__(
        self,
        dataset: Dataset,
        rows: np.ndarray,
        device: torch.device,
        resident: bool | None = None,
        images: Collection[str] | None = None,
        seed: int = 0,
    ) -> None:
        self.dataset, self.seed = dataset, seed
        self.rows = np.sort(rows)
        self.device = device
        self.images = {name: info for name, info in dataset.images.items() if images is None or name in images}
        stored = sum(
            math.ceil(math.prod(image.shape) / 8) if image.layout == "bits" else math.prod(image.shape)
            for image in self.images.values()
        )
        self.resident = _fits(len(rows) * stored, device) if resident is None else resident
        if not self.resident:
            self.dataset = Dataset.open(dataset.path)  # read from as long as these rows live, whoever closes theirs
        self.attributes = {
            name: torch.from_numpy(self._gather(partial(dataset.read_attributes, name))).to(device)
            for name in dataset.attributes
        }
        self.texts = {
            name: torch.from_numpy(
                # int32: torch computes little with uint16.
                self._gather(partial(dataset.read_text, name)).astype(np.int32)
            ).to(device)
            for name in dataset.texts
        }
        self._images: dict[str, Tensor] = {}
        if self.resident:
            for name in self.images:
                stored_rows = self._gather(partial(dataset.read_packed, name))
                self._images[name] = torch.from_numpy(stored_rows).to(device)

    @classmethod
    def of_split(
        cls, dataset: Dataset, scheme: str, part: str, device: torch.device, images: Collection[str] | None = None
    ) -> "DatasetRows":
        """The rows of one part (train, val, test) of a split scheme."""
        rows = cls(dataset, dataset.split(scheme, part), device, images=images)
        rows.origin = f"part '{part}' of split '{scheme}' in {dataset.path}"
        return rows

    def _gather(self, read: Callable[[slice], np.ndarray]) -> np.ndarray:
        """Rows in order, read in slices: one pass over the compressed chunks."""
        parts = []
        for start in range(0, self.dataset.size, _READ_ROWS):
            inside = self.rows[np.searchsorted(self.rows, start) : np.searchsorted(self.rows, start + _READ_ROWS)]
            if len(inside):
                low, high = int(inside[0]), int(inside[-1]) + 1
                parts.append(read(slice(low, high))[inside - low])
        return np.concatenate(parts) if parts else read(slice(0, 0))

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, indices: Tensor) -> Batch:
        return self.sight(indices, self.seed)

    def sight(self, indices: Tensor, seed: int, *sight: str | int) -> Batch:
        images = {}
        for name, info in self.images.items():
            if self.resident:
                stored = self._images[name].index_select(0, indices.to(self.device))
            else:
                stored = self._read(name, indices.cpu().numpy()).to(self.device)
            if info.layout == "probabilities":
                numbers = torch.from_numpy(self.rows[indices.cpu().numpy()])
                images[name] = drawn_pixels(stored, numbers, sight_key(seed, name, *sight))
            else:
                images[name] = unpack_bits(stored, info.shape) if info.layout == "bits" else stored.float() / 255.0
        attributes = {name: codes.index_select(0, indices.to(self.device)) for name, codes in self.attributes.items()}
        texts = {name: words.index_select(0, indices.to(self.device)) for name, words in self.texts.items()}
        return to_batch(images, attributes, texts)

    def mean_image(self, name: str) -> Tensor:
        """Mean of all images of a modality [C, H, W], float64; of pixels that are drawn, of their probabilities."""
        info = self.images[name]
        total = torch.zeros(info.shape, dtype=torch.float64)
        for rows in torch.arange(len(self)).split(_MEAN_ROWS):
            stored = self._images[name][rows[0] : rows[-1] + 1] if self.resident else self._read(name, rows.numpy())
            total += torch.from_numpy(info.unpack(stored.cpu().numpy())).sum(0, dtype=torch.float64)
        return total / (info.scale * len(self))

    def _read(self, name: str, indices: np.ndarray) -> Tensor:
        # HDF5 wants increasing, distinct rows; put them back in the order asked for.
        unique, back = np.unique(self.rows[indices], return_inverse=True)
        return torch.from_numpy(self.dataset.read_packed(name, unique)[back])


def _fits(size: int, device: torch.device) -> bool:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return size < free // 2
    return size < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
