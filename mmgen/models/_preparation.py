"""Preparation of a model for training, such as the reading of given weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mmgen.core.batch import Batch

__all__ = ["Examples", "Preparation"]

Examples = Callable[[int], Batch]
"""Returns a batch of so many examples at most, the same ones every time."""


@dataclass(frozen=True)
class Preparation:
    """Result of the preparation of a model for training.

    Attributes:
        facts: Measurements for the header of the checkpoint.
        run_settings: Values that identify the run besides the settings, such as a hash of given weights.
        note: A sentence for people; "" for none.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    run_settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
