"""What the loop trains: anything that maps a batch to a bound."""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from mmgen.batch import Batch
from mmgen.errors import SettingsError
from mmgen.models._base import Model
from mmgen.objectives._base import Bound, Objective

__all__ = ["ModelTask", "Task"]


class Task(nn.Module, ABC):
    """A module whose forward pass is the objective, so that distributed wrappers see every parameter used."""

    quantity: str = "bound"
    """What is maximised, in the words that progress shows; nats per example."""

    @abstractmethod
    def forward(self, batch: Batch, step: int | None) -> Bound:
        """The value to maximise on a batch; ``step`` is None in validation."""

    def label_weights(self) -> list[nn.Parameter]:
        """What ``training.l2_attributes_decoder`` is for: the weight matrices of p(y|z); none where there is none."""
        return []

    def ordered_parameters(self) -> list[nn.Parameter]:
        """All parameters in the order by which a training state numbers its moments."""
        return list(self.parameters())

    def parameter_groups(self, weight_decay: float = 0.0, l2_attributes_decoder: float = 0.0) -> list[dict[str, Any]]:
        """Groups of trainable parameters for the optimiser, each with its weight decay.

        Args:
            weight_decay: lambda of the term lambda / 2 |w|^2 of every parameter.
            l2_attributes_decoder: What :meth:`label_weights` have on top of that.

        Raises:
            SettingsError: There is a regulariser, and nothing that it is for.
        """
        trainable = [p for p in self.ordered_parameters() if p.requires_grad]
        labels = {id(p) for p in self.label_weights()} if l2_attributes_decoder else set()
        if l2_attributes_decoder and not labels:
            raise SettingsError(
                f"training.l2_attributes_decoder got {l2_attributes_decoder:g}, but nothing that is trained here is a "
                "decoder of attributes; leave the setting out"
            )
        groups = [{"params": [p for p in trainable if id(p) not in labels], "weight_decay": weight_decay}]
        if labels:
            decayed = [p for p in trainable if id(p) in labels]
            groups.append({"params": decayed, "weight_decay": weight_decay + l2_attributes_decoder})
        return groups

    def saved_tensors(self) -> dict[str, Tensor]:
        """What the finished artifact holds."""
        return dict(self.state_dict())


class ModelTask(Task):
    """Trains a model with an objective.

    Args:
        model: The model.
        objective: What is maximised.
    """

    def __init__(self, model: Model, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, batch: Batch, step: int | None) -> Bound:
        return self.objective(self.model, batch, step)

    def label_weights(self) -> list[nn.Parameter]:
        return self.model.label_weights()

    def ordered_parameters(self) -> list[nn.Parameter]:
        """Decoders of attributes come last, as in all states so far."""
        last = {id(p) for p in self.model.label_parameters()}
        every = list(self.parameters())
        return [p for p in every if id(p) not in last] + [p for p in every if id(p) in last]

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.model.state_dict())
