"""Examples of several modalities; each may be unknown."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Examples as tensors by the name of their modality, with masks of the values that are known.

    Attributes:
        values: ``image`` modalities float [B, C, H, W] in [0, 1]; ``attributes`` modalities int64 codes [B, A],
            0 where unknown; ``text`` modalities int64 words [B, T], V where padded; ``graph`` modalities the numbers of
            the examples' nodes, int64 [B].
        present: Bool masks, [B] for a whole modality (image, text, graph), [B, A] for single attributes.
        shared: Tensors of all examples together, such as a graph's edges, by "modality.name". Choosing and
            repeating examples leaves it as it is.
    """

    values: dict[str, Tensor]
    present: dict[str, Tensor]
    shared: dict[str, Tensor] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of examples B in the batch."""
        return next(iter(self.values.values())).shape[0]

    @property
    def device(self) -> torch.device:
        return next(iter(self.values.values())).device

    def known(self, name: str) -> Tensor:
        """Return which examples have a modality, or any part of it, bool [B]."""
        present = self.present[name]
        return present if present.dim() == 1 else present.any(1)

    def select(self, names: Iterable[str]) -> "Batch":
        """Return a batch with those of the modalities ``names`` that this one has."""
        chosen = [name for name in names if name in self.values]
        shared = {key: tensor for key, tensor in self.shared.items() if key.rpartition(".")[0] in chosen}
        return Batch({n: self.values[n] for n in chosen}, {n: self.present[n] for n in chosen}, shared)

    def __or__(self, other: "Batch") -> "Batch":
        """Return a batch with the modalities of both, of the same examples; ``other`` wins where both have one."""
        return Batch(self.values | other.values, self.present | other.present, self.shared | other.shared)

    def to(self, device: torch.device | str) -> "Batch":
        return Batch(*({name: t.to(device) for name, t in part.items()} for part in (*self._rows, self.shared)))

    def repeat(self, k: int) -> "Batch":
        """Repeat each example ``k`` times in a row: [B, ...] becomes [B * k, ...]."""
        values, present = ({name: t.repeat_interleave(k, 0) for name, t in part.items()} for part in self._rows)
        return Batch(values, present, self.shared)

    def __getitem__(self, rows: slice | Tensor) -> "Batch":
        """Return a batch of the examples at the positions ``rows``."""
        values, present = ({name: t[rows] for name, t in part.items()} for part in self._rows)
        return Batch(values, present, self.shared)

    @property
    def _rows(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Tensors with an axis of examples."""
        return self.values, self.present
