"""``mmgen train-classifier``: train the judge that reads attributes off pictures."""

from pathlib import Path
from typing import Annotated

import typer

from cli._console import follow, result, say, table
from cli._options import Device, InputPath, Output, Seed, command_line, read_path

__all__ = ["train_classifier_command"]


def train_classifier_command(
    data: InputPath,
    output: Output = None,
    network: Annotated[
        str, typer.Option("--network", metavar="NAME", help="vedantam (VE's), small, or auto: small on a CPU.")
    ] = "auto",
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="SCHEME", show_default=False, help="Split to learn from; else the default."),
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, show_default=False, help="Optimiser steps.")] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.01, show_default=False, help="Stop after this much training.")
    ] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, show_default=False, help="Examples per step.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", min=1e-9, show_default=False, help="Step size of Adam.")
    ] = None,
    held_out: Annotated[int, typer.Option("--held-out", min=1, help="Test images for its accuracy.")] = 10_000,
    device: Device = "auto",
    precision: Annotated[str, typer.Option("--precision", help="auto, 32-true or bf16-mixed.")] = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Insist on continuing an interrupted run; else one is continued if found.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew, whatever is found.")] = False,
    seed: Seed = 0,
) -> None:
    """Train a judge: a classifier that says which attributes a picture shows, with its own held-out accuracy."""
    from mmgen.artifacts import Dataset
    from mmgen.classifier import names
    from mmgen.classifier._training import ClassifierSettings, default_training, resolve_network, train_classifier
    from mmgen.config import validate
    from mmgen.errors import UsageError
    from mmgen.registry import unknown_name

    path = read_path(data, "dataset")
    if resume and overwrite:
        raise UsageError("--resume and --overwrite exclude each other; give one of them")
    if network not in ("auto", *names()):
        raise UsageError(unknown_name("classifier network", network, ["auto", *names()]))
    chosen = resolve_network(network, device)
    asked = {"steps": steps, "minutes": minutes, "batch": batch, "learning_rate": learning_rate}
    training = {
        **default_training(chosen),
        **{key: value for key, value in asked.items() if value is not None},
        "device": device,
        "precision": precision,
        "seed": seed,
    }
    settings = validate(
        ClassifierSettings, {"network": chosen, "split": split or "", "held_out": held_out, "training": training}
    )
    out = output or Path(f"{path.stem}-judge.safetensors")
    mode = "require" if resume else "never" if overwrite else "auto"
    with Dataset.open(path):
        pass  # a file that is no dataset is reported before any work
    accuracy = follow(train_classifier(path, out, settings, command_line(), mode))
    counts = {name: f"{right:,} of {accuracy.images[name]:,}" for name, right in accuracy.correct.items()}
    rows = [(name, f"{value:.2f} %", counts.get(name, "")) for name, value in accuracy.percent.items()]
    table("Judge on images that it has not seen", ("attribute", "accuracy", "correct"), rows)
    say(f"Judge ({chosen}) written to {out}")
    result(out)
