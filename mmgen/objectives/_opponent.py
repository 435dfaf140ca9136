"""Objectives with a second player: a network that trains beside the model and enters the model's value."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import nn

from mmgen.core.batch import Batch
from mmgen.objectives._base import Bound, Objective


class Opponent(nn.Module, ABC):
    """Base of opponents, such as discriminators: networks that an adversarial objective trains against the model.

    It is trained and resumed with the model and is no part of the finished model.
    """

    name: ClassVar[str]
    """What logs and messages call it, a word: "discriminator"."""

    @property
    @abstractmethod
    def training_settings(self) -> Mapping[str, Any]:
        """Training settings of the opponent that differ from those of the run, by name."""

    @abstractmethod
    def forward(self, model: Any, batch: Batch, other_batch: Batch, step: int | None = None) -> Bound:
        """Return the value that the opponent maximises [B]; the model gets no gradients and stays as it is.

        Args:
            model: The model as it has become in this step.
            batch: B examples, those that the model has just learnt from.
            other_batch: B examples drawn apart from them; in validation the same.
            step: Step of the training; None in validation.
        """


class Adversarial(Objective):
    """Base of objectives that train an opponent beside the model; members are frozen pydantic dataclasses."""

    @abstractmethod
    def opponent(self, model: Any) -> Opponent:
        """Return a new opponent for a model, initialised by torch's global generator."""

    @abstractmethod
    def __call__(self, model: Any, batch: Batch, step: int | None = None, opponent: Opponent | None = None) -> Bound:
        """Return the model's value against an opponent; by default against a new, untrained one."""


@contextmanager
def keep_unchanged(model: nn.Module) -> Iterator[None]:
    """Protect a model from changes within a block: no gradients, and batch norm statistics are restored afterwards."""
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        with torch.no_grad():
            yield
    finally:
        for name, buffer in model.named_buffers():
            buffer.copy_(kept[name])
