"""What a resumed run needs to continue as if it had never stopped: weights, optimiser moments, step, best score."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mmgen.artifacts import Header, read_checkpoint, write_checkpoint
from mmgen.errors import ArtifactError, UsageError

__all__ = ["RunState", "load_state", "save_state", "state_path"]


@dataclass
class RunState:
    """Figures of a run beside its tensors.

    Attributes:
        step: Steps done.
        best: Best validation bound so far (nats per example), None before the first validation.
        seconds: Training time so far.
        finished: Whether the run has ended by itself.
    """

    step: int = 0
    best: float | None = None
    seconds: float = 0.0
    finished: bool = False


def state_path(out: Path) -> Path:
    """Where the state of the run that makes ``out`` is kept: ``model.safetensors`` has ``model.last.safetensors``."""
    return out.with_name(f"{out.name.removesuffix('.safetensors')}.last.safetensors")


def save_state(
    path: Path,
    task: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: RunState,
    settings: dict[str, Any],
    seed: int,
    precision: str,
) -> None:
    """Write everything atomically as a ``training-state`` artifact (no pickle: named tensors and JSON).

    ``precision`` is what the run computes in, which the settings may leave to the hardware.
    """
    figures = {"step": state.step, "best": state.best, "seconds": state.seconds, "finished": state.finished}
    tensors: dict[str, Tensor] = {f"task.{name}": value for name, value in task.state_dict().items()}
    for number, moments in optimizer.state_dict()["state"].items():
        for name, value in moments.items():
            tensors[f"optimizer.{number}.{name}"] = torch.as_tensor(value)
    write_checkpoint(
        path,
        kind="training-state",
        tensors=tensors,
        settings=settings,
        seed=seed,
        parents=(),
        facts=figures | {"precision": precision},
        command="",
    )


def load_state(
    path: Path, task: nn.Module, optimizer: torch.optim.Optimizer, settings: dict[str, Any], precision: str
) -> RunState:
    """Put a saved state back into ``task`` and ``optimizer``.

    Raises:
        UsageError: It belongs to a run with other settings or of another arithmetic; names those that differ.
        ArtifactError: Its settings are those of this run, but its contents are not.
    """
    header, tensors = read_checkpoint(path, "training-state")
    _check_same(path, header, settings, precision)
    try:
        return _put_back(header, tensors, task, optimizer)
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ArtifactError(
            f"{path} holds a state that does not fit this run ({reason}); use --overwrite to begin anew"
        ) from None


def _put_back(
    header: Header, tensors: dict[str, Tensor], task: nn.Module, optimizer: torch.optim.Optimizer
) -> RunState:
    """Weights and moments from ``tensors``; raises whatever torch does where they do not fit."""
    task.load_state_dict({n.removeprefix("task."): t for n, t in tensors.items() if n.startswith("task.")})
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            parameter = parameters[int(number)]
            # Fused Adam walks parameters and moments side by side in memory: they must have the same strides.
            laid_out = torch.empty_like(parameter).copy_(value) if value.shape == parameter.shape else value
            moments.setdefault(int(number), {})[key] = laid_out
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    facts = header.facts
    return RunState(int(facts["step"]), facts["best"], float(facts["seconds"]), bool(facts["finished"]))


def _check_same(path: Path, header: Header, settings: dict[str, Any], precision: str) -> None:
    saved, wanted = (_flatten(json.loads(json.dumps(s))) for s in (header.settings, settings))
    if "precision" in header.facts and not header.facts.get("finished"):
        # "auto" may mean something else on another machine, and what it meant there can be asked for by name here.
        saved["training.precision"], wanted["training.precision"] = header.facts["precision"], precision
    different = [
        f"{key} ({saved.get(key)!r} there, {wanted.get(key)!r} now)"
        for key in sorted(saved.keys() | wanted.keys())
        if saved.get(key) != wanted.get(key)
    ]
    if different:
        raise UsageError(
            f"{path} holds a run with other settings: {', '.join(different)}; use the same settings to continue it, "
            "another --output, or --overwrite to begin anew"
        )


def _flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
