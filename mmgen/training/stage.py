"""Training stages: models, fitted densities and classifiers are trained, saved and loaded in the same way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from mmgen.artifacts import (
    KINDS,
    Header,
    check_output,
    check_unchanged,
    parent_record,
    read_checkpoint,
    write_checkpoint,
)
from mmgen.core.errors import ArtifactError, MmgenError
from mmgen.core.memory import bounded_networks
from mmgen.core.parsing import printable
from mmgen.core.progress import Work
from mmgen.core.seeding import stream_key
from mmgen.training.batches import Rows
from mmgen.training.devices import make_fabric
from mmgen.training.loop import Resume, TrainingResult, train
from mmgen.training.settings import TrainingSettings
from mmgen.training.task import Task

if TYPE_CHECKING:
    from lightning_fabric import Fabric


S = TypeVar("S")
M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class TaskParts:
    """Task, examples and settings of a training stage, built after its files are read.

    Attributes:
        task: The task, with its first weights.
        rows: Training examples.
        validation: Validation examples.
        run_settings: Values that identify the run besides the settings, such as content ids of parents.
        extra_settings: Further settings for the header of the artifact.
        facts: Further facts for the header of the artifact.
        note: A sentence for people on what was prepared; "" for none.
    """

    task: Task
    rows: Rows
    validation: Rows
    run_settings: Mapping[str, Any] = field(default_factory=dict)
    extra_settings: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Stage:
    """Training stage: the kind of artifact, its settings and parents, and the function that builds its task.

    Attributes:
        kind: Kind of artifact to write.
        settings: Settings for the header of the artifact.
        training: Settings of the training loop.
        parents: Input files, by role.
        build: Builds task and data on a device; first weights are drawn from torch's global generator, which is seeded
            before.
        description: Text of progress bars.
        command: The command to record.
        stream: Name of the random stream of first weights.
        opened: Content ids of parents that were read before, by role.
    """

    kind: str
    settings: Mapping[str, Any]
    training: TrainingSettings
    parents: Mapping[str, Path]
    build: Callable[[torch.device], TaskParts]
    description: str = "training"
    command: str = ""
    stream: str = "initial weights"
    opened: Mapping[str, str] = field(default_factory=dict)


def run_stage(stage: Stage, out: Path, resume: Resume = "auto", fabric: "Fabric | None" = None) -> Work[TrainingResult]:
    """Return the work that builds a stage's task, trains it and writes the artifact ``out``.

    Args:
        stage: The stage.
        out: The artifact to write.
        resume: See :func:`mmgen.training.loop.train`.
        fabric: Devices of the run; by default made from the settings.

    Raises:
        UsageError: ``out`` is one of the parents, or a file of another kind; see also the loop.
    """
    check_output(out, stage.kind, *stage.parents.values())
    fabric = fabric or make_fabric(stage.training)

    # First weights come from their own stream, whatever was drawn before.
    torch.manual_seed(stream_key(stage.training.seed, stage.stream))

    parents = tuple(parent_record(parent, role, out) for role, parent in stage.parents.items())  # before all reading
    task_parts = stage.build(fabric.device)
    opened = {parent.role: parent.content_id for parent in parents}
    for role, path in stage.parents.items():
        for content_id in (opened[role], stage.opened.get(role), task_parts.run_settings.get(role)):
            check_unchanged(path, content_id or opened[role])

    def save(path: Path, facts: dict[str, Any]) -> None:
        write_checkpoint(
            path,
            kind=stage.kind,
            tensors=task_parts.task.saved_tensors(),
            settings={**stage.settings, **task_parts.extra_settings},
            seed=stage.training.seed,
            parents=parents,
            facts={**facts, **task_parts.facts},
            command=stage.command,
        )

    run_settings = {**stage.settings, **task_parts.run_settings}
    training = train(
        task_parts.task,
        task_parts.rows,
        task_parts.validation,
        stage.training,
        out,
        save,
        run_settings,
        stage.description,
        resume,
        fabric,
    )
    training.notes = [task_parts.note] if task_parts.note else []
    return training


def add_facts(path: Path, kind: str, facts: Mapping[str, Any]) -> None:
    """Add facts, such as measurements, to the header of a finished artifact, which is rewritten atomically."""
    header, tensors = read_checkpoint(path, kind)
    write_checkpoint(
        path,
        kind=kind,
        tensors=tensors,
        settings=header.settings,
        seed=header.seed,
        parents=header.parents,
        facts={**header.facts, **facts},
        command=header.command,
    )


def load_trained(
    path: Path,
    kind: str,
    build: Callable[[Header, Mapping[str, Tensor]], tuple[S, M]],
    device: torch.device | str = "cpu",
) -> tuple[Header, S, M]:
    """Load a trained network for evaluation, without gradients, with its header and settings.

    Args:
        path: The artifact.
        kind: Its kind.
        build: Builds settings and the untrained module from header and tensors.
        device: Device to compute on.

    Raises:
        ArtifactError: The file is of another kind, or its tensors do not fit its settings.
    """
    header, tensors = read_checkpoint(path, kind)
    try:
        with bounded_networks(sum(each.numel() for each in tensors.values())):
            settings, module = build(header, tensors)
        module.load_state_dict(tensors)
    except (MmgenError, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = printable((str(error) or type(error).__name__).splitlines()[0], 500)
        raise ArtifactError(
            f"{path} holds settings or tensors that do not fit this version of mmgen: {reason}; make it again with "
            f"{KINDS[kind]}"
        ) from None
    # Channels last: without gradients convolutions are 1.2 to 1.4 times faster so on CPUs (with them there is no gain).
    torch.nn.utils.convert_conv2d_weight_memory_format(module, torch.channels_last)
    return header, settings, module.eval().requires_grad_(False).to(device)
