"""``mmgen fit-aggregate``: a trained model into a text-conditional aggregate posterior."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mmgen.cli._console import follow, is_first_process, result
from mmgen.cli._options import Device, InputPath, Output, Seed, command_line, read_path
from mmgen.cli.train import resume_mode

__all__ = ["fit_aggregate_command"]


def fit_aggregate_command(
    model: InputPath,
    output: Output = None,
    given: Annotated[
        str | None,
        typer.Option(
            "--given",
            metavar="WHAT",
            help="attributes (any subset may be unknown), text, or nothing: the prior.",
            show_default="text if the model generates text, else attributes",
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="WHAT",
            help="aggregate of image posteriors (CK Eq. 5), or true: p(words | z)^W p(z) (CK Eq. 3).",
        ),
    ] = "aggregate",
    text_weight: Annotated[
        str | None,
        typer.Option(
            "--text-weight",
            metavar="W",
            help="W of --target true: a number, training (lambda / beta of the model), or 1: the exact p(z | words).",
            show_default="training",
        ),
    ] = None,
    family: Annotated[
        str, typer.Option("--family", metavar="NAME", help="realnvp, nsf, gaussian or mixture.")
    ] = "realnvp",
    examples: Annotated[
        int | None,
        typer.Option("--examples", min=1, help="Training examples to encode at most.", show_default="100000"),
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=0, help="Optimiser steps.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Encodings per step.")] = None,
    precision: Annotated[
        str | None,
        typer.Option("--precision", help="auto, bf16-mixed or 32-true, of the encoder.", show_default="32-true"),
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="ROOM.KEY=VALUE", help="One setting; repeatable.")
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option("--dataset", metavar="FILE", help="The model's dataset, if it is not found by itself."),
    ] = None,
    latents: Annotated[
        Path | None,
        typer.Option(
            "--latents",
            metavar="FILE",
            help="Where encodings are cached; by default beside the model, by what was encoded.",
        ),
    ] = None,
    device: Device = "auto",
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Insist on continuing a saved fit.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew even if a fit was saved.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the effective settings as JSON and leave.")] = False,
) -> None:
    """Learn the aggregate posterior q(z | description) of a trained model.

    The model stays as it is. Its training examples are encoded once and cached; a conditional density is then fitted to
    the encodings. Attributes are dropped at random meanwhile, so one aggregate answers any partial description;
    captions are read whole, by a recurrent network that is fitted with the density.
    """
    path = read_path(model, "model")
    values: dict[str, Any] = {
        "aggregate": {"target": target, "family": {"name": family}},
        "training": {"device": device, "seed": seed},
    }
    for key, value in (("given", given), ("examples", examples), ("text_weight", text_weight)):
        if value is not None:
            values["aggregate"][key] = value
    for key, value in (("steps", steps), ("batch", batch), ("precision", precision)):
        if value is not None:
            values["training"][key] = value

    from mmgen.aggregates._fit import complete_fit_settings, fit_aggregate
    from mmgen.artifacts import find_parent
    from mmgen.config import merge, parse_assignments
    from mmgen.training.model_run import load_model

    trained = load_model(path)[1]
    settings = complete_fit_settings(merge(values, parse_assignments(assignments or [])), trained)
    if dry_run:
        result(settings.model_dump_json(indent=2))
        return
    out = output or path.with_name(f"{path.stem}-{settings.slug}.safetensors")
    encoding, fitting = fit_aggregate(
        path,
        dataset or find_parent(path, "dataset"),
        settings,
        out,
        latents,
        command_line(),
        resume_mode(resume, overwrite),
    )
    follow(encoding)
    follow(fitting)
    if is_first_process():
        result(out)
