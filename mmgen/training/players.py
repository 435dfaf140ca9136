"""The players of a task as the loop moves them: each with parameters, an optimiser and a watch over its figures."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.optim import Optimizer

from mmgen.core.batch import Batch
from mmgen.training.guard import Guard
from mmgen.training.settings import TrainingSettings
from mmgen.training.task import BOUND, Task

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Player", "make_optimizers", "set_up"]


class _Step(nn.Module):
    """One player's task with dictionaries in and out, since Fabric's wrappers cannot look into dataclasses."""

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
    """One player of a training: its parameters, its optimiser and its check for NaN.

    Attributes:
        name: As the task calls it.
        module: The task, as Fabric wraps it: ``module(values, present, shared, step)`` are the player's figures.
        optimizer: Optimiser of the player's parameters.
        others: Parameters of the other players; none where it plays alone.
        guard: What watches its figures.
        settings: How it learns.
        batches: Batches that it looks at in a step.
    """

    name: str
    module: nn.Module
    optimizer: Optimizer
    others: tuple[nn.Parameter, ...]
    guard: Guard
    settings: TrainingSettings
    batches: int

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Switch off gradients of the other players' parameters within a block."""
        for parameter in self.others:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in self.others:
                parameter.requires_grad_(True)


def make_optimizers(task: Task, settings: TrainingSettings) -> dict[str, Optimizer]:
    """Make an optimiser for each player of a task."""
    assert all(player.isidentifier() for player in task.players), f"players {task.players} are not called by words"
    made = {}
    for player in task.players:
        own = task.settings_of(player, settings)
        made[player] = own.build_optimizer(task.parameter_groups(player, own.weight_decay))
    owned = [id(p) for optimizer in made.values() for group in optimizer.param_groups for p in group["params"]]
    trained = {id(p) for p in task.parameters() if p.requires_grad}
    assert sorted(owned) == sorted(trained), "a parameter of the task belongs to no player, or to two"
    return made


def set_up(
    task: Task, optimizers: Mapping[str, Optimizer], fabric: "Fabric", settings: TrainingSettings
) -> list[Player]:
    """Set up the players of a task in order, on the devices of the run."""
    own = {
        name: [p for group in optimizer.param_groups for p in group["params"]] for name, optimizer in optimizers.items()
    }
    players = []
    for name, optimizer in optimizers.items():
        others = tuple(p for other, parameters in own.items() if other != name for p in parameters)
        guard = Guard(1 if fabric.device.type == "cpu" else 20, name if others else "")
        learns, batches = task.settings_of(name, settings), task.batches(name)
        bare = Player(name, _Step(task, name), optimizer, others, guard, learns, batches)
        with bare.turn():  # so that processes exchange gradients of the player's own parameters alone
            module, wrapped = fabric.setup(bare.module, optimizer)
        players.append(replace(bare, module=module, optimizer=wrapped))
    return players
