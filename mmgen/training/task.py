"""Training tasks: modules that map a batch to a value to maximise, for one player or several."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.modalities import Description
from mmgen.models import Model
from mmgen.objectives import Adversarial, Bound, Objective, Opponent

if TYPE_CHECKING:
    from mmgen.training.settings import TrainingSettings

__all__ = ["ALONE", "BOUND", "MODEL", "ModelTask", "Task", "figures_by_name", "make_parameter_groups"]

ALONE = "all"
"""Name of the only player of a task."""

MODEL = "model"
"""Name of the model as a player beside an opponent."""

BOUND = "bound"
"""Name of a player's value among figures; with several players "critic/bound"."""


class Task(nn.Module, ABC):
    """Base of training tasks: a module whose forward pass is the value to maximise, for one player or several.

    A task has one player, or several as in a game: each has its own parameters, value to maximise and optimiser. In
    every step all players are updated in their order. They share the same batch; a player may need further ones (see
    :meth:`batch_count`).
    """

    quantity: str = BOUND
    """Name of the value for progress bars; it is in nats per example."""
    players: tuple[str, ...] = (ALONE,)
    """Names of the players, in the order of their updates."""
    selects: str | None = BOUND
    """Name of the figure of :meth:`validate` whose largest mean selects the best weights; None keeps the last weights,
    as in a game, where no player's value measures the progress of both."""

    @abstractmethod
    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return the value that a player maximises on a batch.

        Args:
            batch: B examples.
            step: Step of the training; None in validation.
            player: Name of the player; parameters of the others get no gradient.
        """

    def validate(self, batch: Batch) -> dict[str, Tensor]:
        """Return figures of a batch of validation examples, each [B]; by default every player's value and its terms."""
        figures: dict[str, Tensor] = {}
        for player in self.players:
            figures |= figures_by_name(self, player, self(batch, None, player))
        return figures

    def batch_count(self, player: str) -> int:
        """Return the number of batches that a player needs in each step."""
        return 1

    def player_settings(self, player: str, settings: "TrainingSettings") -> "TrainingSettings":
        """Return the training settings of a player: those of the run, perhaps with another optimiser."""
        return settings

    def player_parameters(self, player: str) -> list[nn.Parameter]:
        """Return the parameters of a player, in the order in which a training state numbers them.

        By default those of the submodule with the player's name; a single player has all parameters.
        """
        return list((self if len(self.players) == 1 else self.get_submodule(player)).parameters())

    def parameter_groups(self, player: str = ALONE, weight_decay: float = 0.0) -> list[dict[str, Any]]:
        """Return groups of a player's trainable parameters for the optimiser, each with its weight decay.

        A group may have further options of torch's optimiser ("betas"), and a "rate", a factor of the learning rate.

        Args:
            player: One of :attr:`players`.
            weight_decay: lambda of the term lambda / 2 |w|^2 of every parameter.
        """
        return make_parameter_groups(self.player_parameters(player), weight_decay)

    def saved_tensors(self) -> dict[str, Tensor]:
        """Return the tensors that the finished artifact holds, by name."""
        return dict(self.state_dict())


def figures_by_name(task: Task, player: str, bound: Bound) -> dict[str, Tensor]:
    """Return a player's value and terms by name; with several players each name begins with the player's name."""
    prefix = "" if len(task.players) == 1 else f"{player}/"
    return {f"{prefix}{name}": figure for name, figure in {BOUND: bound.value, **bound.terms}.items()}


def make_parameter_groups(
    parameters: Iterable[nn.Parameter],
    weight_decay: float,
    decayed: Iterable[nn.Parameter] = (),
    extra_decay: float = 0.0,
) -> list[dict[str, Any]]:
    """Group trainable parameters by weight decay: ``decayed`` ones get ``extra_decay`` in addition.

    Raises:
        SettingsError: ``extra_decay`` is set, but there are no ``decayed`` parameters.
    """
    trainable = [p for p in parameters if p.requires_grad]
    chosen = {id(p) for p in decayed} if extra_decay else set()
    if extra_decay and not chosen:
        raise SettingsError(
            f"model.l2_attributes_decoder got {extra_decay:g}, but this model has no decoder of attributes; leave the "
            "setting out"
        )
    groups = [{"params": [p for p in trainable if id(p) not in chosen], "weight_decay": weight_decay}]
    if chosen:
        groups.append({"params": [p for p in trainable if id(p) in chosen], "weight_decay": weight_decay + extra_decay})
    return groups


class ModelTask(Task):
    """Training task of a model by an objective, with an opponent such as a discriminator if the objective has one.

    An opponent is updated after the model. Since the model's value depends on an opponent that goes on learning, values
    of two steps cannot be compared, and the last weights are saved; so they are if ``objective.selects`` is False.
    Only the model is saved.

    Args:
        model: The model.
        objective: The objective.
        l2_attributes_decoder: lambda of a term lambda / 2 |w|^2 of the weight matrices of p(y|z), besides the weight
            decay of all parameters.
        descriptions: Kinds of data by modality, of which pictures are drawn; none by default.
    """

    def __init__(
        self,
        model: Model,
        objective: Objective,
        l2_attributes_decoder: float = 0.0,
        descriptions: Mapping[str, Description] | None = None,
    ) -> None:
        super().__init__()
        self.descriptions = descriptions or {}
        self.model = model
        self.objective = objective
        self.l2_attributes_decoder = l2_attributes_decoder
        self.opponent: Opponent | None = None
        if not objective.selects:
            self.selects = None
        if isinstance(objective, Adversarial):
            self.opponent = objective.opponent(model)
            self.players = (MODEL, self.opponent.name)
            self.selects = None

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        if self.opponent is None or not isinstance(self.objective, Adversarial):
            return self.objective(self.model, batch, step)
        if player == MODEL:
            return self.objective(self.model, batch, step, self.opponent)
        halves = slice(batch.size // 2), slice(batch.size // 2, None)
        return self.opponent(self.model, batch[halves[0]], batch[halves[1]], step)

    def validate(self, batch: Batch) -> dict[str, Tensor]:
        """Return the model's figures by name, and the opponent's with its name as prefix."""
        if self.opponent is None:
            return super().validate(batch)
        bound = self(batch, None, MODEL)
        # There is one batch: it is given twice, and each draws its own z.
        return {BOUND: bound.value, **bound.terms} | figures_by_name(
            self, self.opponent.name, self.opponent(self.model, batch, batch, None)
        )

    def batch_count(self, player: str) -> int:
        return 2 if self._opponent_named(player) else 1

    def player_settings(self, player: str, settings: "TrainingSettings") -> "TrainingSettings":
        opponent = self._opponent_named(player)
        return settings.for_player(opponent.training_settings) if opponent else settings

    def player_parameters(self, player: str) -> list[nn.Parameter]:
        """Return a player's parameters, those of attribute decoders last, as training states number them."""
        if opponent := self._opponent_named(player):
            return list(opponent.parameters())
        last = {id(p) for p in self.model.label_parameters()}
        parameters = list(self.model.parameters())
        return [p for p in parameters if id(p) not in last] + [p for p in parameters if id(p) in last]

    def parameter_groups(self, player: str = ALONE, weight_decay: float = 0.0) -> list[dict[str, Any]]:
        parameters = self.player_parameters(player)
        if self._opponent_named(player):
            return make_parameter_groups(parameters, weight_decay)
        return make_parameter_groups(parameters, weight_decay, self.model.label_weights(), self.l2_attributes_decoder)

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.model.state_dict())

    def _opponent_named(self, player: str) -> Opponent | None:
        """Return the opponent if it is the player of this name; else None."""
        return self.opponent if self.opponent is not None and player == self.opponent.name else None
