"""The base of likelihoods of dense data, such as images."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from mmgen.core.errors import SettingsError


def full_precision(tensor: Tensor) -> Tensor:
    """Convert bf16 and fp16, which networks return under autocast, to fp32 for densities; keep fp32 and fp64."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


class Likelihood(ABC):
    """Base class of likelihoods p(x | decoder output), independent over the last ``event_dims`` axes (3: an image)."""

    parameters_per_value: int = 1
    """Number of decoder outputs for one value of x."""

    @abstractmethod
    def log_prob(self, parameters: Tensor, value: Tensor, event_dims: int = 3) -> Tensor:
        """Return log p(value | parameters) in nats [...], summed over ``event_dims`` axes; the others broadcast."""

    @abstractmethod
    def mean(self, parameters: Tensor) -> Tensor:
        """Return the mean E[x | parameters], in the shape of x."""

    def parameters_of_mean(self, mean: Tensor) -> Tensor:
        """Return decoder outputs for which E[x] is ``mean`` [C, H, W], or nearly so for pixels that never change.

        Raises:
            SettingsError: The likelihood does not support it.
        """
        name = type(self).__name__
        raise SettingsError(f"model.output_bias got 'mean', which likelihood {name} does not support; leave it out")

    @abstractmethod
    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw x from p(x | parameters) once, as float in the shape of x."""
