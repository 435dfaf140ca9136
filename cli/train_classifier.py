"""``mmgen train-classifier``: train the judge that reads attributes off pictures."""

from typing import Annotated

import typer

from mmgen.cli._completion import members
from mmgen.cli._console import follow, is_first_process, result, say, table
from mmgen.cli._options import (
    Anew,
    Device,
    InputPath,
    LogTo,
    Output,
    Resume,
    Seed,
    command_line,
    read_path,
    resume_mode,
)
from mmgen.core.parsing import listed

__all__ = ["train_classifier_command"]


def train_classifier_command(
    data: InputPath,
    output: Output = None,
    network: Annotated[
        str,
        typer.Option(
            "--network",
            metavar="NAME",
            help="One of {mmgen.classifier}; or auto: by data and device.",
            autocompletion=members("mmgen.classifier", "auto"),
        ),
    ] = "auto",
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="SCHEME", show_default=False, help="Split to learn from; else the default."),
    ] = None,
    told: Annotated[
        str | None,
        typer.Option(
            "--told",
            metavar="LIST",
            show_default=False,
            help="Attributes that it is told, not asked, or nothing; by default the relation of two objects.",
        ),
    ] = None,
    augment: Annotated[
        bool,
        typer.Option(
            "--augment/--no-augment", help="Reword and mirror descriptions of two objects, and move their pictures."
        ),
    ] = True,
    steps: Annotated[int | None, typer.Option("--steps", min=1, show_default=False, help="Optimiser steps.")] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.01, show_default=False, help="Stop after this much training.")
    ] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, show_default=False, help="Examples per step.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", min=1e-9, show_default=False, help="Step size of the optimiser.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", show_default=False, help="Another setting, as training.gradient_clip=5."
        ),
    ] = None,
    held_out: Annotated[int, typer.Option("--held-out", min=1, help="Test images for its accuracy.")] = 10_000,
    device: Device = "auto",
    devices: Annotated[int, typer.Option("--devices", min=1, help="GPUs (or CPU processes) to use.")] = 1,
    precision: Annotated[str, typer.Option("--precision", help="auto, 32-true or bf16-mixed.")] = "auto",
    log_to: LogTo = None,
    resume: Resume = False,
    overwrite: Anew = False,
    seed: Seed = 0,
) -> None:
    """Train a judge: a classifier that says which attributes a picture shows, with its own held-out accuracy."""
    path = read_path(data, "dataset")
    mode = resume_mode(resume, overwrite)

    from mmgen.classifier import train_classifier  # seconds, which a mistake need not take
    from mmgen.commands.workflow import plan_judge
    from mmgen.settings.config import parse_assignments

    settings, out = plan_judge(
        path,
        output,
        network=network,
        told=_list(told),
        training={
            "steps": steps,
            "minutes": minutes,
            "batch": batch,
            "learning_rate": learning_rate,
            "device": device,
            "devices": devices,
            "precision": precision,
            "seed": seed,
            "log_to": log_to,
        },
        others={"augment": augment, "split": split or "", "held_out": held_out},
        assignments=parse_assignments(assignments or []),
    )
    accuracy = follow(train_classifier(path, out, settings, command_line(), mode))
    if not is_first_process():
        return
    counts = {name: f"{right:,} of {accuracy.images[name]:,}" for name, right in accuracy.correct.items()}
    errors = accuracy.stderr
    rows = [
        (name, f"{value:.2f} ± {errors[name]:.2f} %", counts.get(name, "")) for name, value in accuracy.percent.items()
    ]
    table("Judge on images that it has not seen", ("attribute", "accuracy ± standard error", "correct"), rows)
    if settings.told:
        say(f"It is told {', '.join(settings.told)}; 'words' counts that as right, as the papers' correctness does.")
    say(f"Judge ({settings.network}) written to {out}")
    result(out)


def _list(text: str | None) -> list[str] | None:
    """Names with commas between; "nothing" is none of them."""
    if text is None:
        return None
    return [] if text == "nothing" else [name for name in listed(text) if name]
