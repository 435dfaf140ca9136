"""Averaged weights: a running mean of a task's parameters, which validation and the finished artifact use.

References:
    Acceleration of Stochastic Approximation by Averaging (Polyak, Juditsky, 1992)
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

__all__ = ["AveragedWeights"]


class AveragedWeights:
    """Exponential moving average of the trainable parameters of a task.

    After step t the mean moves towards the weights by 1 - min(decay, (1 + t) / (10 + t)): early steps, which are far
    from the end, are forgotten fast. Buffers, such as the statistics of batch norm, are not averaged.

    Args:
        task: The task; the mean starts at its weights.
        decay: Share of the mean that a step keeps, below 1.
    """

    def __init__(self, task: nn.Module, decay: float) -> None:
        self.decay = decay
        self._parameters = {name: p for name, p in task.named_parameters() if p.requires_grad}
        self.means = {name: p.detach().clone() for name, p in self._parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move the averages towards the weights after training step ``step``, counted from 1."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.means.values()), list(self._parameters.values()), 1 - decay)

    @contextmanager
    def apply(self) -> Iterator[None]:
        """Replace the task's weights by their averages within a block, and restore them afterwards."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def load(self, means: Mapping[str, Tensor]) -> None:
        """Restore the averages of a saved run.

        Raises:
            ValueError: A tensor is missing, has another shape or is not finite.
        """
        for name, mean in self.means.items():
            saved = means.get(name)
            if saved is None or saved.shape != mean.shape or not saved.isfinite().all():
                raise ValueError(f"the state lacks a finite average of the weights '{name}'")
            mean.copy_(saved)

    @torch.no_grad()
    def _swap(self) -> None:
        """Exchange weights and averages."""
        for name, parameter in self._parameters.items():
            own = parameter.detach().clone()
            parameter.copy_(self.means[name])
            self.means[name].copy_(own)
