"""The base of likelihoods of dense data, such as images."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from mmgen.core.errors import SettingsError

__all__ = ["Likelihood", "full_precision"]


def full_precision(tensor: Tensor) -> Tensor:
    """Convert to fp32 at least: network outputs may be bf16 under autocast, densities never are; fp64 stays fp64."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


class Likelihood(ABC):
    """p(x | parameters), independent over the event's axes (the last ``event_dims``, 3 for an image)."""

    parameters_per_value: int = 1
    """How many decoder outputs describe one value of x."""

    @abstractmethod
    def log_prob(self, parameters: Tensor, value: Tensor, event_dims: int = 3) -> Tensor:
        """Return log p(value | parameters) in nats, summed over the event: [..., *event] -> [...]; batch axes
        broadcast.
        """

    @abstractmethod
    def mean(self, parameters: Tensor) -> Tensor:
        """Return E[x | parameters], the shape of x."""

    def parameters_of(self, mean: Tensor) -> Tensor:
        """Return decoder outputs whose E[x] is ``mean`` [C, H, W], or near it where a pixel never changes.

        Raises:
            SettingsError: The likelihood knows none.
        """
        name = type(self).__name__
        raise SettingsError(f"model.output_bias got 'mean', which {name} has no decoder output for; leave it out")

    @abstractmethod
    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return one draw of x, the shape of x, float."""
