"""What the loop trains: anything that maps a batch to a bound."""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from mmgen.batch import Batch
from mmgen.objectives._base import Bound, Objective

__all__ = ["ModelTask", "Task"]


class Task(nn.Module, ABC):
    """A module whose forward pass is the objective, so that distributed wrappers see every parameter used."""

    quantity: str = "bound"
    """What is maximised, in the words that progress shows; nats per example."""

    @abstractmethod
    def forward(self, batch: Batch, step: int | None) -> Bound:
        """The value to maximise on a batch; ``step`` is None in validation."""

    def parameter_groups(self, l2_attributes_decoder: float) -> list[dict[str, Any]]:
        """Groups of trainable parameters for the optimiser, each with its weight decay."""
        return [{"params": [p for p in self.parameters() if p.requires_grad], "weight_decay": 0.0}]

    def saved_tensors(self) -> dict[str, Tensor]:
        """What the finished artifact holds."""
        return dict(self.state_dict())


class ModelTask(Task):
    """Trains a model with an objective.

    Args:
        model: The model.
        objective: What is maximised.
    """

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, batch: Batch, step: int | None) -> Bound:
        return self.objective(self.model, batch, step)  # type: ignore[arg-type]  # nn.Module attribute

    def parameter_groups(self, l2_attributes_decoder: float) -> list[dict[str, Any]]:
        decoder = {name: p for name, p in self.named_parameters() if name.startswith("model.decoders.attributes.")}
        rest = [p for name, p in self.named_parameters() if name not in decoder]
        groups = [{"params": rest, "weight_decay": 0.0}]
        if decoder:
            groups.append({"params": list(decoder.values()), "weight_decay": l2_attributes_decoder})
        return groups

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.model.state_dict())
