"""``mmgen train``: a dataset into a trained model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._completion import members, presets
from mmgen.cli._console import CONSOLE, is_first_process, result, say
from mmgen.cli._options import (
    Anew,
    InputPath,
    KeepState,
    LogTo,
    Output,
    Reads,
    Resume,
    command_line,
    read_path,
    resume_mode,
    seed_option,
)

if TYPE_CHECKING:
    from mmgen.training.loop import TrainingResult

__all__ = ["train_command"]


def train_command(
    dataset: InputPath,
    output: Output = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="Settings of a published experiment; see mmgen list.",
            autocompletion=presets,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Settings from a TOML file, over the preset."),
        Reads("file of settings", makes=""),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ROOM.KEY=VALUE", help="One setting, over everything else; repeatable."),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            metavar="NAME",
            help="What is maximised: {mmgen.objectives}.",
            autocompletion=members("mmgen.objectives"),
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="SCHEME",
            help="Split scheme to train on, such as iid; mmgen show DATA names those of the file.",
        ),
    ] = None,
    paired: Annotated[
        float | None,
        typer.Option(
            "--paired", min=0, max=1, metavar="SHARE", help="Keep this share of the examples paired, shuffle the rest."
        ),
    ] = None,
    labelled: Annotated[
        int | None,
        typer.Option(
            "--labelled",
            min=1,
            metavar="N",
            help="Keep the labels of so many training examples, balanced over their values; hide all others.",
        ),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Begin with this model's weights and networks, for another objective or schedule.",
        ),
        Reads("model"),
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=0, help="Optimiser steps.")] = None,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", help="Stop after this much training time; a cosine schedule then follows the clock."),
    ] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Examples per step.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", min=1e-9, help="Step size of the optimiser.")
    ] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="NAME", help="auto, cpu, cuda, cuda:1.")] = None,
    devices: Annotated[int | None, typer.Option("--devices", min=1, help="GPUs (or CPU processes) to use.")] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="auto, bf16-mixed or 32-true.")] = None,
    seed: Annotated[int | None, seed_option()] = None,
    log_to: LogTo = None,
    resume: Resume = False,
    overwrite: Anew = False,
    keep_state: KeepState = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Build the networks once, print the effective settings as JSON and leave.")
    ] = False,
) -> None:
    """Train a model on a dataset.

    Writes the weights that are best by validation bound, and beside them a log (.log.jsonl) and the state to continue
    from (.last.safetensors), of which some kB are left when the run has ended: what it was, so that the same command
    again finds it done. --log-to sends the log elsewhere as well.
    Ctrl-C saves; the same command again continues, with the same result as without the break. The exception is
    --minutes: the clock ends such a run, and a cosine schedule follows it.

    --from begins a new run with the weights of another model, which becomes its parent: its networks, its split and
    what its objective looks at are taken over (other weights such as beta only by the same objective), its training
    settings are not. --resume goes on with an unfinished run.
    """
    path = read_path(dataset, "dataset")
    mode = resume_mode(resume, overwrite)
    options = {
        "training.steps": steps,
        "training.minutes": minutes,
        "training.batch": batch,
        "training.learning_rate": learning_rate,
        "training.device": device,
        "training.devices": devices,
        "training.precision": precision,
        "training.seed": seed,
        "training.log_to": log_to,
        "training.keep_state": keep_state or None,
        "data.split": split,
        "data.paired": paired,
        "data.labelled": labelled,
    }

    from mmgen.commands.workflow import plan_training
    from mmgen.settings.config import parse_assignments

    plan = plan_training(
        path, output, CONSOLE, preset=preset, config=config, objective=objective, options=options,
        assignments=parse_assignments(assignments or []), start=start,
    )  # fmt: skip
    if dry_run:
        plan.check()
        result(plan.settings.model_dump_json(indent=2))
        return
    trained = plan.run(command_line(), mode, CONSOLE)
    if is_first_process():
        if trained.best is not None:
            say(_best(trained, plan.out))
        result(plan.out)


def _best(run: "TrainingResult", out: Path) -> str:
    """The best validation value, and which weights the file holds."""
    from mmgen.artifacts import read_header
    from mmgen.artifacts.contents import trained

    header = read_header(out)
    own = header.facts.get("validation_bound")
    kept = f" ({own:,.2f} of the weights that are kept)" if isinstance(own, float) and own != run.best else ""
    return f"best validation value {run.best:,.2f} nats per example{kept}: {trained(header, run.steps)}"
