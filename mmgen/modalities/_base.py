"""What every modality offers: how to read decoder outputs as a distribution, and how to leave out what is unknown."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

__all__ = ["Modality"]


class Modality(ABC):
    """One kind of observation, x_m of p(z) prod_m p(x_m | z)."""

    name: str
    """Its name in a :class:`~mmgen.batch.Batch` and in a dataset file."""

    @abstractmethod
    def log_prob(self, parameters: Tensor, value: Tensor, present: Tensor) -> Tensor:
        """log p(value | parameters) in nats [...]; what is not present contributes nothing (it is integrated out).

        Args:
            parameters: Decoder output [..., B, *event].
            value: [B, *event].
            present: [B] or, for attributes, [B, A].
        """

    @abstractmethod
    def mean(self, parameters: Tensor) -> Tensor:
        """E[x | parameters] for an image; for attributes the probabilities [..., A, V], 0 beyond a value's range."""

    @abstractmethod
    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A draw: an image [..., C, H, W], or attribute codes int64 [..., A]."""
