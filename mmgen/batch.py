"""Examples of several modalities, each of which may be unknown."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """Tensors by modality name plus presence masks; "unknown" is a first-class value.

    Attributes:
        values: ``image`` modalities float [B, C, H, W] in [0, 1]; ``attributes`` modalities int64 codes [B, A],
            0 where unknown; ``text`` modalities int64 words [B, T], V where padded.
        present: Bool masks, [B] for a whole modality (image, text), [B, A] for single attributes.
    """

    values: dict[str, Tensor]
    present: dict[str, Tensor]

    @property
    def size(self) -> int:
        """Number of examples B."""
        return next(iter(self.values.values())).shape[0]

    @property
    def device(self) -> torch.device:
        return next(iter(self.values.values())).device

    def select(self, names: Iterable[str]) -> "Batch":
        """Only the named modalities (those that the batch has)."""
        kept = [name for name in names if name in self.values]
        return Batch({n: self.values[n] for n in kept}, {n: self.present[n] for n in kept})

    def __or__(self, other: "Batch") -> "Batch":
        """Both batches' modalities, of the same examples; where both have one it is that of ``other``."""
        return Batch({**self.values, **other.values}, {**self.present, **other.present})

    def to(self, device: torch.device | str) -> "Batch":
        return Batch(
            {n: t.to(device) for n, t in self.values.items()}, {n: t.to(device) for n, t in self.present.items()}
        )

    def repeat(self, k: int) -> "Batch":
        """Each example ``k`` times, one after the other: [B, ...] becomes [B * k, ...]."""
        return Batch(
            {n: t.repeat_interleave(k, 0) for n, t in self.values.items()},
            {n: t.repeat_interleave(k, 0) for n, t in self.present.items()},
        )

    def __getitem__(self, rows: slice | Tensor) -> "Batch":
        """The examples at ``rows``."""
        return Batch({n: t[rows] for n, t in self.values.items()}, {n: t[rows] for n, t in self.present.items()})
