"""What a resumed run needs to continue as if it had never stopped: weights, optimiser moments, step, best score.

Moments are called ``optimizer.<number>.<name>`` by the number of their parameter; those of several players
``optimizer.<player>.<number>.<name>``, numbered player by player.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from mmgen.artifacts import Header, read_checkpoint, read_header, write_checkpoint
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.parsing import printable
from mmgen.training.optimizers import optimizer_state

__all__ = [
    "UNFINISHED",
    "RunState",
    "interrupted",
    "is_finished",
    "load_state",
    "mark_finished",
    "save_state",
    "state_path",
]

UNFINISHED: dict[str, Any] = {"finished": False}
"""What an artifact says among its facts as long as its run goes on; a finished one says nothing of it."""

_SQUARES = ("exp_avg_sq", "square_avg", "sum")
_EXACT = 2**24  # float32, in which optimisers count their steps, holds every whole number up to here


@dataclass
class RunState:
    """Progress of a run beside its tensors: step, best value, seconds, whether it has ended.

    Attributes:
        step: Steps done.
        best: Best validation bound so far (nats per example), or what else the task selects by; None before the first
            validation, and where the task does not select.
        seconds: Training time so far.
        finished: Whether the run has ended by itself.
    """

    step: int = 0
    best: float | None = None
    seconds: float = 0.0
    finished: bool = False


def state_path(out: Path) -> Path:
    """Return the path of a run's training state: ``model.last.safetensors`` for ``model.safetensors``."""
    return out.with_name(f"{out.name.removesuffix('.safetensors')}.last.safetensors")


def is_finished(header: Header) -> bool:
    """Return whether the run behind an artifact or a training state ran to its end."""
    return header.facts.get("finished", True) is True


def mark_finished(out: Path) -> None:
    """Mark an artifact as that of a run which has ended; it is rewritten whole or not at all."""
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
        facts={name: value for name, value in header.facts.items() if name not in UNFINISHED},
        command=header.command,
    )


def interrupted(out: Path) -> str:
    """Return a sentence if the training of ``out`` was interrupted, by its state or its header; "" otherwise."""
    path = state_path(out)
    try:
        header = read_header(path)
        state = _read_progress(header.facts) if header.kind == "training-state" else RunState(finished=True)
    except (ArtifactError, OSError, ValueError):
        return _interruption_without_state(out)
    if state.finished:
        return ""
    steps = header.settings.get("training", {}).get("steps")
    of = f" of {steps:,}" if type(steps) is int else ""
    return f"{out} is what a run had learnt when it was interrupted at step {state.step:,}{of}; go on with its command"


def _interruption_without_state(out: Path) -> str:
    """Return a sentence if the training of ``out`` was interrupted and no training state can be read; "" otherwise."""
    try:
        header = read_header(out)
    except (ArtifactError, OSError):
        return ""
    if is_finished(header):
        return ""
    return (
        f"{out} is what a run had learnt when it was interrupted, and the state to go on with is gone; train it again"
    )


def _moment_prefixes(players: Mapping[str, Any]) -> dict[str, str]:
    """Return the prefix of the names of each player's moments in a training state."""
    return {name: "optimizer." if len(players) == 1 else f"optimizer.{name}." for name in players}


def save_state(
    path: Path,
    task: nn.Module,
    optimizers: Mapping[str, Optimizer],
    state: RunState,
    settings: dict[str, Any],
    seed: int,
    precision: str,
    whole: bool = True,
) -> None:
    """Write a ``training-state`` artifact, whole or not at all (no pickle: named tensors and JSON).

    Args:
        path: Where.
        task: What is trained.
        optimizers: The players', by name.
        state: Figures of the run.
        settings: What the run is.
        seed: Its seed.
        precision: What it computes in, which the settings may leave to the hardware.
        whole: Whether to write weights and moments; of a run that has ended its figures and settings are enough to
            know it again.
    """
    figures: dict[str, Any] = {
        "step": state.step,
        "best": state.best,
        "seconds": state.seconds,
        "finished": state.finished,
    }
    tensors: dict[str, Tensor] = {f"task.{name}": value for name, value in task.state_dict().items()}
    counts = {}
    for player, place in _moment_prefixes(optimizers).items():
        moments_by_parameter = optimizers[player].state_dict()["state"]
        for number, moments in moments_by_parameter.items():
            tensors |= {f"{place}{number}.{name}": torch.as_tensor(value) for name, value in moments.items()}
        counts[player] = len(moments_by_parameter)  # a parameter whose gradient is always None has no moments
    figures["parameters_with_moments"] = counts if len(counts) > 1 else sum(counts.values())
    write_checkpoint(
        path,
        kind="training-state",
        tensors=tensors if whole else {},
        settings=settings,
        seed=seed,
        parents=(),
        facts=figures | {"precision": precision},
        command="",
    )


def load_state(
    path: Path, task: nn.Module, optimizers: Mapping[str, Optimizer], settings: dict[str, Any], precision: str
) -> RunState:
    """Load a training state into ``task`` and the ``optimizers`` of its players.

    Of a run that has ended and left only its figures nothing is put back. One that has ended and left everything goes
    on where more steps are asked for, if its learning rate does not depend on their number.

    Raises:
        UsageError: It belongs to a run with other settings or of another arithmetic; names those that differ.
        ArtifactError: Its settings are those of this run, but its contents are not.
    """
    header, tensors = read_checkpoint(path, "training-state")
    try:
        state = _read_progress(header.facts)
        more = _check_settings(path, header, settings, precision, has_tensors=bool(tensors))
        if state.finished and not tensors:
            return state
        state.finished = state.finished and not more
        _load_tensors(tensors, task, optimizers)
        _check_moments(header.facts, state, optimizers)
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        reason = printable((str(error) or type(error).__name__).splitlines()[0])
        raise ArtifactError(
            f"{path} holds a state that does not fit this run ({reason}); use --overwrite to begin anew"
        ) from None
    return state


def _read_progress(facts: dict[str, Any]) -> RunState:
    """Read the progress of a run out of a file's facts."""
    step, best, seconds, finished = (facts.get(name) for name in ("step", "best", "seconds", "finished"))
    number = _finite(seconds)
    if type(step) is not int or step < 0:
        raise ValueError(f"its step is {step!r}, expected a whole number from 0")
    if best is not None and _finite(best) is None:
        raise ValueError(f"its best bound is {best!r}, expected a finite number or null")
    if number is None or number < 0:
        raise ValueError(f"its seconds are {seconds!r}, expected a number from 0")
    if type(finished) is not bool:
        raise ValueError(f"whether it has finished is {finished!r}, expected true or false")
    return RunState(step, _finite(best), number, finished)


def _finite(value: Any) -> float | None:
    """Return a number if it is finite, else None."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good else None


def _load_tensors(tensors: dict[str, Tensor], task: nn.Module, optimizers: Mapping[str, Optimizer]) -> None:
    """Load weights and moments from ``tensors``; raise torch's errors where they do not fit."""
    weights = {n.removeprefix("task."): t for n, t in tensors.items() if n.startswith("task.")}
    for name, _ in task.named_parameters():
        if name not in weights:
            raise ValueError(f"it lacks the weights '{name}'")
        if not weights[name].isfinite().all():
            raise ValueError(f"its weights '{name}' are not finite")
    task.load_state_dict(weights)
    remaining = {name: value for name, value in tensors.items() if name.startswith("optimizer.")}
    for player, place in _moment_prefixes(optimizers).items():
        moments = {name: remaining.pop(name) for name in list(remaining) if name.startswith(place)}
        _load_moments(place, moments, optimizers[player])
    if remaining:
        raise ValueError(f"its optimisers have '{next(iter(remaining))}', which belongs to no player")


def _load_moments(place: str, tensors: dict[str, Tensor], optimizer: Optimizer) -> None:
    """Load the moments of one player, whose names begin with ``place``; raise ValueError where they do not fit."""
    groups = [(optimizer_state(optimizer, group), group["params"]) for group in optimizer.param_groups]
    parameters = [(p, kept) for kept, own in groups for p in own]
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        number, _, key = name.removeprefix(place).partition(".")
        known = number.isdecimal() and int(number) < len(parameters)
        parameter, kept = parameters[int(number)] if known else (None, {})
        if parameter is None or key not in kept:
            raise ValueError(f"its optimiser has '{name}', which belongs to no parameter")
        is_count = not kept[key].shape
        shape = torch.Size() if is_count else parameter.shape
        if value.shape != shape:
            raise ValueError(f"its '{name}' has shape {list(value.shape)}, expected {list(shape)}")
        # Fused Adam walks parameters and moments side by side in memory: they must have the same strides.
        own = value if is_count else torch.empty_like(parameter).copy_(value)
        moments.setdefault(int(number), {})[key] = own
    for number_of_one, found in moments.items():
        missing = sorted(parameters[number_of_one][1].keys() - found.keys())
        if missing:
            raise ValueError(f"a parameter lacks the moment {missing[0]}")
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})


def _check_moments(facts: dict[str, Any], state: RunState, optimizers: Mapping[str, Optimizer]) -> None:
    """Refuse a state without the moments of its optimisers, or with those of another step."""
    expected_counts = facts.get("parameters_with_moments")  # not said before format version 2
    for player, optimizer in optimizers.items():
        with_moments = [
            optimizer.state[p] for group in optimizer.param_groups for p in group["params"] if p in optimizer.state
        ]
        expected = (
            expected_counts.get(player)
            if isinstance(expected_counts, dict)
            else len(with_moments)
            if expected_counts is None
            else expected_counts
        )
        if len(with_moments) != expected:
            raise ValueError(f"it has moments of {len(with_moments)} parameters, expected {expected}")
        steps = []
        for moments in with_moments:
            squares = [moments[name] for name in _SQUARES if name in moments]
            if not all(one.isfinite().all() for one in moments.values()) or any((one < 0).any() for one in squares):
                raise ValueError("a moment is negative or not finite")
            steps += [float(moments["step"])] if "step" in moments else []
        # Some parameter has had a gradient at every step; sgd does not count them.
        counts = any("step" in optimizer_state(optimizer, group) for group in optimizer.param_groups)
        if counts and max(steps, default=0.0) != state.step and state.step <= _EXACT:
            raise ValueError(f"its optimiser has made {max(steps, default=0.0):g} steps, but it says {state.step}")
        if any(step < 0 or step != int(step) for step in steps):
            raise ValueError("its optimiser has made a number of steps that is no whole number from 0")


def _check_settings(
    path: Path, header: Header, settings: dict[str, Any], precision: str, has_tensors: bool = True
) -> bool:
    """Refuse a state of other settings; return True if the settings ask for more steps than a finished run made."""
    saved, requested = (_flatten(json.loads(json.dumps(values))) for values in (header.settings, settings))
    ended = bool(header.facts.get("finished"))
    extends = ended and _extends_steps(saved, requested)
    if "precision" in header.facts and (extends or not ended):
        # "auto" may mean something else on another machine, and what it meant there can be asked for by name here.
        saved["training.precision"], requested["training.precision"] = header.facts["precision"], precision
    different = [
        f"{key} ({_clipped(saved.get(key))} there, {_clipped(requested.get(key))} now)"
        for key in sorted(saved.keys() | requested.keys())
        if saved.get(key) != requested.get(key)
    ]
    extends = extends and len(different) == 1
    if extends and not has_tensors:
        raise UsageError(
            f"{path} says that this run has ended after {saved['training.steps']:,} steps; it could take more only if "
            "--keep-state had kept its last weights and moments: use --overwrite to begin anew, or another --output"
        )
    if different and not extends:
        listed = printable(", ".join(different), 2000)
        raise UsageError(
            f"{path} holds a run with other settings: {listed}; use the same settings to continue it, "
            "another --output, or --overwrite to begin anew"
        )
    return extends


def _extends_steps(saved: dict[str, Any], requested: dict[str, Any]) -> bool:
    """Return whether settings differ in the number of steps alone, and no schedule depends on it."""
    differ = {key for key in saved.keys() | requested.keys() if saved.get(key) != requested.get(key)}
    constant = requested.get("training.schedule") == "constant" and requested.get("training.minutes") is None
    before, now = (values.get("training.steps") for values in (saved, requested))
    return (
        differ == {"training.steps"} and constant and isinstance(before, int) and isinstance(now, int) and before < now
    )


def _clipped(value: Any) -> str:
    return printable(repr(value), 80)


def _flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
