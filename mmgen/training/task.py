"""What the loop trains: anything that maps a batch to a value, for one player or several."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.models import Model
from mmgen.objectives import Adversarial, Bound, Objective, Opponent

if TYPE_CHECKING:
    from mmgen.training.settings import TrainingSettings

__all__ = ["ALONE", "BOUND", "MODEL", "ModelTask", "Task", "figures_of", "groups_of"]

ALONE = "all"
"""The player of a task that has only one, with all parameters."""

MODEL = "model"
"""The player that is a model, where an objective brings an opponent."""

BOUND = "bound"
"""What the value of a player is called among figures: of several, "critic/bound"."""


class Task(nn.Module, ABC):
    """Base of training tasks: a module whose forward pass is the value to maximise, for one player or several.

    A task has one player, or several as in a game: each has parameters, a value to maximise and an optimiser of its
    own. In every step all of them move, in their order; each sees what those before it have become. They look at the
    same batch, which further ones may follow (see :meth:`batches`).
    """

    quantity: str = BOUND
    """What is maximised, in the words that progress shows; nats per example."""
    players: tuple[str, ...] = (ALONE,)
    """Names of the players, in the order in which they move."""
    selects: str | None = BOUND
    """The figure of :meth:`validate` whose largest mean marks the best weights; None where the last are best, as in a
    game, where no player's own value says how far both have come."""

    @abstractmethod
    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return the value to maximise on a batch.

        Args:
            batch: B examples.
            step: Step of the training; None in validation.
            player: Whose value it is; of parameters of the others no gradient is taken.
        """

    def validate(self, batch: Batch) -> dict[str, Tensor]:
        """Return figures of a batch of validation examples, each [B]; by default every player's value and its terms."""
        figures: dict[str, Tensor] = {}
        for player in self.players:
            figures |= figures_of(self, player, self(batch, None, player))
        return figures

    def batches(self, player: str) -> int:
        """Return how many batches a player needs in each step."""
        return 1

    def settings_of(self, player: str, settings: "TrainingSettings") -> "TrainingSettings":
        """Return the settings of a player: those of the run, possibly with another optimiser or learning rate."""
        return settings

    def player_parameters(self, player: str) -> list[nn.Parameter]:
        """List the parameters of a player, in the order by which a training state numbers them (except for muon's).

        By default those of the part of the task that is called as the player is; a player alone has all.
        """
        return list((self if len(self.players) == 1 else self.get_submodule(player)).parameters())

    def parameter_groups(self, player: str = ALONE, weight_decay: float = 0.0) -> list[dict[str, Any]]:
        """Return groups of a player's trainable parameters for the optimiser, each with its weight decay.

        A group may have further options of torch's optimiser ("betas"), and a "rate", a factor of the learning rate.

        Args:
            player: One of :attr:`players`.
            weight_decay: lambda of the term lambda / 2 |w|^2 of every parameter.
        """
        return groups_of(self.player_parameters(player), weight_decay)

    def saved_tensors(self) -> dict[str, Tensor]:
        """Return the tensors that the finished artifact holds."""
        return dict(self.state_dict())


def figures_of(task: Task, player: str, bound: Bound) -> dict[str, Tensor]:
    """Return a player's value and its terms by name; with several players each name begins with the player's."""
    before = "" if len(task.players) == 1 else f"{player}/"
    return {f"{before}{name}": figure for name, figure in {BOUND: bound.value, **bound.terms}.items()}


def groups_of(
    parameters: Iterable[nn.Parameter], weight_decay: float, further: Iterable[nn.Parameter] = (), decay: float = 0.0
) -> list[dict[str, Any]]:
    """Group trainable ``parameters`` with ``weight_decay``, and ``further`` ones with ``decay`` added to it.

    Raises:
        SettingsError: There is such a decay, and nothing that it is for.
    """
    trainable = [p for p in parameters if p.requires_grad]
    chosen = {id(p) for p in further} if decay else set()
    if decay and not chosen:
        raise SettingsError(
            f"model.l2_attributes_decoder got {decay:g}, but nothing that is trained here is a decoder of attributes; "
            "leave the setting out"
        )
    groups = [{"params": [p for p in trainable if id(p) not in chosen], "weight_decay": weight_decay}]
    if chosen:
        groups.append({"params": [p for p in trainable if id(p) in chosen], "weight_decay": weight_decay + decay})
    return groups


class ModelTask(Task):
    """Trains a model by an objective, and an opponent such as a discriminator if the objective has one.

    The last weights are kept of an objective whose value does not say which are best, and of one with an opponent.
    Against that the model moves first; its value is measured by an opponent that goes on learning, so that those of two
    steps cannot be compared. What is saved is the model alone.

    Args:
        model: The model.
        objective: What is maximised.
        l2_attributes_decoder: lambda of a term lambda / 2 |w|^2 of the weight matrices of p(y|z), besides the weight
            decay of all parameters.
    """

    def __init__(self, model: Model, objective: Objective, l2_attributes_decoder: float = 0.0) -> None:
        super().__init__()
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
        own = slice(batch.size // 2), slice(batch.size // 2, None)
        return self.opponent(self.model, batch[own[0]], batch[own[1]], step)

    def validate(self, batch: Batch) -> dict[str, Tensor]:
        """Return the model's figures by their plain names, and the opponent's with its name before them."""
        if self.opponent is None:
            return super().validate(batch)
        bound = self(batch, None, MODEL)
        # There is one batch: it is given twice, and each draws its own z.
        return {BOUND: bound.value, **bound.terms} | figures_of(
            self, self.opponent.name, self.opponent(self.model, batch, batch, None)
        )

    def batches(self, player: str) -> int:
        return 2 if self._opponent(player) else 1

    def settings_of(self, player: str, settings: "TrainingSettings") -> "TrainingSettings":
        opponent = self._opponent(player)
        return settings.for_player(opponent.learns) if opponent else settings

    def player_parameters(self, player: str) -> list[nn.Parameter]:
        """List parameters with those of attribute decoders last, the order in training states."""
        if opponent := self._opponent(player):
            return list(opponent.parameters())
        last = {id(p) for p in self.model.label_parameters()}
        every = list(self.model.parameters())
        return [p for p in every if id(p) not in last] + [p for p in every if id(p) in last]

    def parameter_groups(self, player: str = ALONE, weight_decay: float = 0.0) -> list[dict[str, Any]]:
        parameters = self.player_parameters(player)
        if self._opponent(player):
            return groups_of(parameters, weight_decay)
        return groups_of(parameters, weight_decay, self.model.label_weights(), self.l2_attributes_decoder)

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.model.state_dict())

    def _opponent(self, player: str) -> Opponent | None:
        """Return the opponent if it is the player of this name."""
        return self.opponent if self.opponent is not None and player == self.opponent.name else None
