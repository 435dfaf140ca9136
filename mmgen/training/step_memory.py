"""Memory of a training's steps and validation, told by the shapes of tensors before any of it is taken."""

import logging
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.core.memory import available_memory, check_memory
from mmgen.training.batches import Order, Rows
from mmgen.training.precision import autocast
from mmgen.training.settings import TrainingSettings
from mmgen.training.task import Player

_SMALL = 2**20  # bytes of masks and their kind, which decide on shapes and so keep their values
_WEIGHS = 1.5  # what multiplies memory takes it down by this factor at least, if there is half of it


class _ShapesOfLargeTensors(TorchDispatchMode):
    """Mode in which tensors that are large, or follow from a shape alone, are nothing but shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.fake, self.largest = FakeTensorMode(allow_non_fake_inputs=True), 0
        self.weights: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operands = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        made = None
        if not any(isinstance(operand, FakeTensor) for operand in operands):
            with suppress(Exception):  # where values decide, they are there
                made = self._shapes(function, args, kwargs, operands)
        made = function(*args, **kwargs) if made is None else made
        storages = [leaf.untyped_storage() for leaf in tree_leaves(made) if isinstance(leaf, FakeTensor)]
        self.largest = max([self.largest, *(each.nbytes() for each in storages if each._cdata not in self.weights)])
        return made

    def _shapes(self, function: Any, args: Any, kwargs: Any, operands: list[Tensor]) -> Any:
        """Return the shapes that a function makes of values or of nothing; None if they are small."""
        device = {"device": torch.device("meta")} if "device" in kwargs or not operands else {}
        inputs = tree_map_only(Tensor, lambda operand: operand.to("meta"), (args, kwargs))
        shapes = function(*inputs[0], **{**inputs[1], **device})
        if all(leaf.nbytes <= _SMALL for leaf in tree_leaves(shapes) if isinstance(leaf, Tensor)):
            return None
        place = kwargs.get("device") or (operands[0].device if operands else torch.device("cpu"))
        return tree_map_only(Tensor, lambda shape: FakeTensor(self.fake, shape, place), shapes)


@contextmanager
def _without_complaints() -> Iterator[None]:
    """Pass over what shapes alone do not tell, and torch's lines on it; random generators stay as they are."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with suppress(Exception), torch.random.fork_rng(devices=[]):
            yield
    finally:
        log.setLevel(level)


def needed_bytes(module: nn.Module, batch: Batch, step: int | None, precision: str = "32-true") -> int:
    """Return the bytes that a player's step takes at least, or, without a step, a batch of validation.

    It is what the gradient needs, or the largest tensor; what shapes alone do not tell is left out. Nothing changes.

    Args:
        module: A player's module: ``module(values, present, shared, step)`` returns its figures.
        batch: The examples.
        step: The step; None for validation, which needs no gradient.
        precision: Arithmetic of networks (see :func:`mmgen.training.precision.autocast`).
    """
    mode, kept = _ShapesOfLargeTensors(), list[weakref.ref[Tensor]]()

    def keep(tensor: Tensor) -> Tensor:
        kept.append(weakref.ref(tensor))  # of which the graph alone holds it
        return tensor

    def shape(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():  # codes and places, which decide on shapes
            return tensor.clone()
        return mode.fake.from_tensor(tensor.detach()).requires_grad_(tensor.requires_grad)

    size, plain = 0, [(part, dict(vars(part))) for part in module.modules()]
    with _without_complaints(), torch.set_grad_enabled(step is not None), saved_tensors_hooks(keep, lambda each: each):
        state = {name: shape(each) for name, each in (*module.named_parameters(), *module.named_buffers())}
        values = {name: shape(each) for name, each in batch.values.items()}
        mode.weights = {each.untyped_storage()._cdata for each in state.values()}
        with mode, autocast(batch.device, precision):
            figures = functional_call(module, state, (values, batch.present, batch.shared, step))
        held = [tensor.untyped_storage() for each in kept if isinstance(tensor := each(), FakeTensor)]
        size = sum({each._cdata: each.nbytes() for each in held if each._cdata not in mode.weights}.values())
        del figures
    for part, attributes in plain:  # a task may keep what it has drawn for its next player
        vars(part).clear()
        vars(part).update(attributes)
    return max(size, mode.largest)


def check_step(player: Player, batch: Batch, step: int | None, precision: str, free: int | None = None) -> None:
    """Refuse a step of a player, or without a step a batch of validation, that no memory holds; name the setting.

    Args:
        player: The player, whose module is that of a :class:`Task`.
        batch: The examples.
        step: The step; None for validation.
        precision: Arithmetic of networks.
        free: Bytes that are free; None for those of this process.

    Raises:
        UsageError: It takes more; the message names the setting that multiplies it most.
    """
    module: Any = player.module.module
    with player.freeze_others():
        needed = needed_bytes(module, batch, step, precision)
    free = available_memory() if free is None else free
    if free is None or needed <= free:
        return
    task, causes = module.task, dict[int, str]()
    objective: Any = getattr(task, "objective", None)
    numbers = {each.name: getattr(objective, each.name) for each in fields(objective)} if objective is not None else {}
    for name, value in numbers.items():
        if type(value) is int and value > 1:
            with suppress(SettingsError):
                task.objective = replace(objective, **{name: value // 2})
                if needed_bytes(module, batch, step, precision) < needed / _WEIGHS:
                    causes[value] = f"objective.{name}"
            task.objective = objective
    largest = max([*causes, batch.size])
    what = causes.get(largest, "--batch" if step is not None else "training.validation_examples")
    check_memory(needed, f"a step with {what} {largest:,}", f"use a smaller {what}", free)


def check_run(
    players: Sequence[Player], rows: Rows, validation: Rows, settings: TrainingSettings, precision: str, step: int
) -> None:
    """Refuse a training of which no memory holds a batch, a step or a validation, before any is made.

    Args:
        players: The players.
        rows: Training examples.
        validation: Validation examples.
        settings: Settings of the run.
        precision: Arithmetic of networks.
        step: The next step.

    Raises:
        UsageError: See :func:`check_step`.
    """
    example = rows.batch(torch.zeros(1, dtype=torch.int64))
    free = torch.cuda.mem_get_info(example.device)[0] if example.device.type == "cuda" else None
    size = settings.batch * sum(values.nbytes for values in example.values.values())
    check_memory(size, f"a batch of {settings.batch:,}", "use a smaller --batch", free)
    share = Order(len(rows), settings.batch, settings.seed)[step][:: settings.devices]
    for player in players:
        check_step(
            player, rows.view(share.repeat(player.batch_count), settings.seed, "step", step), step, precision, free
        )
    examples = torch.arange(min(len(validation), settings.validation_examples, validation.validation_batch))
    check_step(players[0], validation.view(examples, settings.seed, "validation"), None, precision, free)
