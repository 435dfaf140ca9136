"""Training tasks: modules that map a batch to a value to maximise, for one player or several."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.optim import Optimizer

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.modalities import Description
from mmgen.models import Model
from mmgen.objectives import Adversarial, Bound, Objective, Opponent
from mmgen.training.settings import TrainingSettings
from mmgen.training.validation import NanGuard

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from mmgen.training.settings import TrainingSettings


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


class _PlayerModule(nn.Module):
    """Module that computes one player's value, with dictionaries as inputs and outputs as Fabric needs them."""

    def __init__(self, task: Task, player: str) -> None:
        super().__init__()
        self.task = task
        self.player = player

    def forward(
        self,
        values: dict[str, Tensor],
        present: dict[str, Tensor],
        shared: dict[str, Tensor],
        step: int | None,
    ) -> dict[str, Tensor]:
        """Return the player's value as "bound" and its terms, each [B]; without a step, the validation figures."""
        batch = Batch(values, present, shared)
        if step is None:
            return self.task.validate(batch)
        bound = self.task(batch, step, self.player)
        return {BOUND: bound.value, **bound.terms}


@dataclass(frozen=True)
class Player:
    """Player of a training, such as the model or a discriminator: its parameters, optimiser and check for NaN.

    Attributes:
        name: Its name in the task.
        module: The task wrapped by Fabric: ``module(values, present, shared, step)`` returns the player's figures.
        optimizer: Optimiser of the player's parameters.
        others: Parameters of the other players; () for a single player.
        guard: The check of its figures for NaN.
        settings: Its training settings.
        batch_count: Number of batches that it needs in a step.
    """

    name: str
    module: nn.Module
    optimizer: Optimizer
    others: tuple[nn.Parameter, ...]
    guard: NanGuard
    settings: TrainingSettings
    batch_count: int

    @contextmanager
    def freeze_others(self) -> Iterator[None]:
        """Freeze the parameters of the other players within a block."""
        for parameter in self.others:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in self.others:
                parameter.requires_grad_(True)


def make_optimizers(task: Task, settings: TrainingSettings) -> dict[str, Optimizer]:
    """Return an optimiser for each player of a task, by name."""
    assert all(player.isidentifier() for player in task.players), f"players {task.players} are not called by words"
    optimizers = {}
    for player in task.players:
        player_settings = task.player_settings(player, settings)
        optimizers[player] = player_settings.build_optimizer(
            task.parameter_groups(player, player_settings.weight_decay)
        )
    player_parameters = [
        id(p) for optimizer in optimizers.values() for group in optimizer.param_groups for p in group["params"]
    ]
    trained = {id(p) for p in task.parameters() if p.requires_grad}
    assert sorted(player_parameters) == sorted(trained), "a parameter of the task belongs to no player, or to two"
    return optimizers


def make_players(
    task: Task, optimizers: Mapping[str, Optimizer], fabric: "Fabric", settings: TrainingSettings
) -> list[Player]:
    """Return the players of a task, in their order, on the devices of the run."""
    parameters_by_player = {
        name: [p for group in optimizer.param_groups for p in group["params"]] for name, optimizer in optimizers.items()
    }
    players = []
    for name, optimizer in optimizers.items():
        others = tuple(p for other, parameters in parameters_by_player.items() if other != name for p in parameters)
        guard = NanGuard(1 if fabric.device.type == "cpu" else 20, name if others else "")
        player_settings, batch_count = task.player_settings(name, settings), task.batch_count(name)
        unwrapped = Player(name, _PlayerModule(task, name), optimizer, others, guard, player_settings, batch_count)
        with unwrapped.freeze_others():  # so that processes exchange gradients of the player's own parameters alone
            module, wrapped = fabric.setup(unwrapped.module, optimizer)
        players.append(replace(unwrapped, module=module, optimizer=wrapped))
    return players
