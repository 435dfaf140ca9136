"""The players of a task in the training loop: each has parameters, an optimiser and a check for NaN."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.optim import Optimizer

from mmgen.core.batch import Batch
from mmgen.training.guard import NanGuard
from mmgen.training.settings import TrainingSettings
from mmgen.training.task import BOUND, Task

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Player", "make_optimizers", "make_players"]


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
