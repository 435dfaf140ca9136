"""Training states, from which a run continues as if it had never stopped: weights, optimiser moments, step, best value.

Tensors of moments are named ``optimizer.<number>.<name>`` by the number of their parameter; with several players
``optimizer.<player>.<number>.<name>``.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from mmgen.artifacts import Header, read_checkpoint, read_header, write_checkpoint
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.parsing import printable
from mmgen.training.optimizers import optimizer_state
from mmgen.training.weights import AveragedWeights

UNFINISHED: dict[str, Any] = {"finished": False}
"""Facts in the header of an artifact until its run has finished."""

_SQUARES = ("exp_avg_sq", "square_avg", "sum")
_AVERAGE = "average."
_EXACT = 2**24  # float32, in which optimisers count their steps, holds every whole number up to here


@dataclass
class RunState:
    """Progress of a run: step, best value, seconds, and whether it has finished.

    Attributes:
        step: Number of completed steps.
        best: Best validation value so far (by default the bound in nats per example); None before the first
            validation, and for tasks that do not select weights.
        seconds: Training time so far.
        finished: Whether the run has made all its steps, or has run out of time or patience.
        level: Best validation value, whether or not its weights are still there; None before the first validation.
        waited: Number of validations since then.
        converged: Whether the run has run out of patience.
    """

    step: int = 0
    best: float | None = None
    seconds: float = 0.0
    finished: bool = False
    level: float | None = None
    waited: int = 0
    converged: bool = False

    def wait(self, value: float, patience: int) -> None:
        """Count a validation; after ``patience`` of them without a rise the run has converged."""
        if self.level is None or value > self.level:
            self.level, self.waited = value, 0
        else:
            self.waited += 1
        self.converged = self.waited >= patience


def state_path(out: Path) -> Path:
    """Return the path of a run's training state: ``model.last.safetensors`` for ``model.safetensors``."""
    return out.with_name(f"{out.name.removesuffix('.safetensors')}.last.safetensors")


def is_finished(header: Header) -> bool:
    """Return whether the run that wrote an artifact or a training state has finished."""
    return header.facts.get("finished", True) is True


def mark_finished(out: Path, facts: Mapping[str, Any]) -> None:
    """Mark an artifact as that of a finished run and add facts to its header; it is rewritten atomically."""
    header = read_header(out)
    if is_finished(header):
        return
    _, tensors = read_checkpoint(out, header.kind)
    write_checkpoint(
        out,
        kind=header.kind,
        tensors=tensors,
        settings=header.settings,
        seed=header.seed,
        parents=header.parents,
        facts={name: value for name, value in header.facts.items() if name not in UNFINISHED} | dict(facts),
        command=header.command,
    )


def describe_interruption(out: Path) -> str:
    """Return a sentence if the training of ``out`` was interrupted, by its state or header; "" otherwise."""
    path = state_path(out)
    try:
        header = read_header(path)
        state = _read_progress(header.facts) if header.kind == "training-state" else RunState(finished=True)
    except (ArtifactError, OSError, KeyError, TypeError, ValueError):
        return _describe_interruption_without_state(out)
    if state.finished:
        return ""
    steps = header.settings.get("training", {}).get("steps")
    of = f" of {steps:,}" if type(steps) is int else ""
    return f"{out} is from a run that was interrupted at step {state.step:,}{of}; give its command again to continue"


def _describe_interruption_without_state(out: Path) -> str:
    """Return a sentence if the training of ``out`` was interrupted and lacks a readable state; "" otherwise."""
    try:
        header = read_header(out)
    except (ArtifactError, OSError):
        return ""
    if is_finished(header):
        return ""
    return f"{out} is from a run that was interrupted, and the state to continue from is missing; train it again"


def _moment_prefixes(players: Mapping[str, Any]) -> dict[str, str]:
    """Return by player the prefix that its optimiser's tensors have in a training state."""
    return {name: "optimizer." if len(players) == 1 else f"optimizer.{name}." for name in players}


def save_state(
    path: Path,
    task: nn.Module,
    optimizers: Mapping[str, Optimizer],
    state: RunState,
    settings: dict[str, Any],
    seed: int,
    precision: str,
    with_tensors: bool = True,
    average: AveragedWeights | None = None,
) -> None:
    """Write a training state atomically, an artifact of named tensors and JSON without pickle.

    Args:
        path: The file.
        task: The task in training.
        optimizers: Optimisers of the players, by name.
        state: Progress of the run.
        settings: Settings that identify the run.
        seed: Seed of the run.
        precision: Resolved precision of the run.
        with_tensors: Whether to write weights and moments; a finished run is identified without them.
        average: Averaged weights of the run, if it has them.
    """
    facts = asdict(state)
    tensors: dict[str, Tensor] = {f"task.{name}": value for name, value in task.state_dict().items()}
    if average is not None:
        tensors |= {f"{_AVERAGE}{name}": mean for name, mean in average.means.items()}
    counts = {}
    for player, prefix in _moment_prefixes(optimizers).items():
        moments_by_parameter = optimizers[player].state_dict()["state"]
        for number, moments in moments_by_parameter.items():
            tensors |= {f"{prefix}{number}.{name}": torch.as_tensor(value) for name, value in moments.items()}
        counts[player] = len(moments_by_parameter)  # a parameter whose gradient is always None has no moments
    facts["parameters_with_moments"] = counts if len(counts) > 1 else sum(counts.values())
    write_checkpoint(
        path,
        kind="training-state",
        tensors=tensors if with_tensors else {},
        settings=settings,
        seed=seed,
        parents=(),
        facts=facts | {"precision": precision},
        command="",
    )


def load_state(
    path: Path,
    task: nn.Module,
    optimizers: Mapping[str, Optimizer],
    settings: dict[str, Any],
    precision: str,
    average: AveragedWeights | None = None,
) -> RunState:
    """Load a training state into a task and the optimisers of its players; return the progress of the run.

    A state of a finished run without tensors changes nothing. One with tensors continues if the settings have more
    steps and the learning rate does not depend on their number.

    Raises:
        UsageError: It belongs to a run with other settings or precision; the message names them.
        ArtifactError: Its settings are those of this run, but its contents do not fit.
    """
    header, tensors = read_checkpoint(path, "training-state")
    try:
        state = _read_progress(header.facts)
        extends = _check_settings(path, header, settings, precision, has_tensors=bool(tensors))
        if state.finished and not tensors:
            return state
        if extends and state.converged:
            extends = False  # with more steps it would have stopped at the same one
        state.finished = state.finished and not extends
        _load_tensors(tensors, task, optimizers)
        if average is not None:
            average.load({n.removeprefix(_AVERAGE): mean for n, mean in tensors.items() if n.startswith(_AVERAGE)})
        _check_moments(header.facts, state, optimizers)
    except (KeyError, TypeError, ValueError, RuntimeError):
        raise ArtifactError(
            f"{path} does not fit this run: it is damaged or was changed; use --overwrite to begin anew"
        ) from None
    return state


def _read_progress(facts: dict[str, Any]) -> RunState:
    """Return the progress of a run from the facts of a file's header; raise an error for impossible ones."""
    given = {one.name: facts[one.name] for one in fields(RunState) if one.name in facts}
    state = RunState(**{"step": facts["step"], "seconds": facts["seconds"], "finished": facts["finished"], **given})
    _require(all(type(count) is int and count >= 0 for count in (state.step, state.waited)))
    _require(all(type(mark) is bool for mark in (state.finished, state.converged)))
    _require(all(value is None or _is_finite(value) for value in (state.best, state.level)))
    _require(_is_finite(state.seconds) and state.seconds >= 0)
    return state


def _require(fits: bool) -> None:
    """Raise an error, which :func:`load_state` explains, unless a part of a state fits."""
    if not fits:
        raise ValueError


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _load_tensors(tensors: dict[str, Tensor], task: nn.Module, optimizers: Mapping[str, Optimizer]) -> None:
    """Load weights and optimiser tensors; raise an error if they do not fit."""
    weights = {n.removeprefix("task."): t for n, t in tensors.items() if n.startswith("task.")}
    _require(all(bool(weights[name].isfinite().all()) for name, _ in task.named_parameters()))
    task.load_state_dict(weights)
    remaining = {name: value for name, value in tensors.items() if name.startswith("optimizer.")}
    for player, prefix in _moment_prefixes(optimizers).items():
        moments = {name: remaining.pop(name) for name in list(remaining) if name.startswith(prefix)}
        _load_moments(prefix, moments, optimizers[player])
    _require(not remaining)


def _load_moments(prefix: str, tensors: dict[str, Tensor], optimizer: Optimizer) -> None:
    """Load one player's optimiser tensors, whose names begin with ``prefix``; raise an error if they do not fit."""
    groups = [(optimizer_state(optimizer, group), group["params"]) for group in optimizer.param_groups]
    parameters = dict(enumerate((p, expected) for expected, members in groups for p in members))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        number, _, key = name.removeprefix(prefix).partition(".")
        parameter, expected = parameters[int(number)]
        is_count = not expected[key].shape
        _require(value.shape == (torch.Size() if is_count else parameter.shape) and bool(value.isfinite().all()))
        _require(key not in _SQUARES or bool((value >= 0).all()))
        # Fused Adam walks parameters and moments side by side in memory: they must have the same strides.
        moment = value if is_count else torch.empty_like(parameter).copy_(value)
        moments.setdefault(int(number), {})[key] = moment
    _require(all(stored.keys() == parameters[number][1].keys() for number, stored in moments.items()))
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})


def _check_moments(facts: dict[str, Any], state: RunState, optimizers: Mapping[str, Optimizer]) -> None:
    """Raise an error for a state that lacks its optimisers' tensors, or has those of another step."""
    counts = facts["parameters_with_moments"]
    for player, optimizer in optimizers.items():
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        found = [optimizer.state[p] for p in parameters if p in optimizer.state]
        _require(len(found) == (counts[player] if isinstance(counts, dict) else counts))
        steps = [float(moments["step"]) for moments in found if "step" in moments]
        _require(all(step >= 0 and step == int(step) for step in steps))
        # Some parameter has had a gradient at every step; sgd does not count them.
        counted = any("step" in optimizer_state(optimizer, group) for group in optimizer.param_groups)
        _require(not counted or max(steps, default=0.0) == state.step or state.step > _EXACT)


def _check_settings(
    path: Path, header: Header, settings: dict[str, Any], precision: str, has_tensors: bool = True
) -> bool:
    """Refuse a state of other settings; return True if they ask for more steps than a finished run made."""
    saved, requested = (_flatten(json.loads(json.dumps(values))) for values in (header.settings, settings))
    is_finished_run = bool(header.facts.get("finished"))
    extends = is_finished_run and _only_adds_steps(saved, requested)
    if "precision" in header.facts and (extends or not is_finished_run):
        # "auto" may mean something else on another machine, and what it meant there can be asked for by name here.
        saved["training.precision"], requested["training.precision"] = header.facts["precision"], precision
    different = [
        f"{key} ({_shorten(saved.get(key))} there, {_shorten(requested.get(key))} now)"
        for key in sorted(saved.keys() | requested.keys())
        if saved.get(key) != requested.get(key)
    ]
    extends = extends and len(different) == 1
    if extends and not has_tensors:
        raise UsageError(
            f"{path} belongs to a run that has finished its {saved['training.steps']:,} steps without --keep-state, so "
            "that it has no weights to continue from; use --overwrite to begin anew, or another --output"
        )
    if different and not extends:
        listed = printable(", ".join(different), 2000)
        raise UsageError(
            f"{path} holds a run with other settings: {listed}; use the same settings to continue it, "
            "another --output, or --overwrite to begin anew"
        )
    return extends


def _only_adds_steps(saved: dict[str, Any], requested: dict[str, Any]) -> bool:
    """Return whether settings differ only by more steps, on which the learning rate does not depend."""
    differ = {key for key in saved.keys() | requested.keys() if saved.get(key) != requested.get(key)}
    constant = requested.get("training.schedule") == "constant" and requested.get("training.minutes") is None
    before, now = (values.get("training.steps") for values in (saved, requested))
    return (
        differ == {"training.steps"} and constant and isinstance(before, int) and isinstance(now, int) and before < now
    )


def _shorten(value: Any) -> str:
    """Return a value as text of limited length."""
    return printable(repr(value), 80)


def _flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as one table with dotted names."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
