"""``mmgen fit-aggregate``: a trained model into a text-conditional aggregate posterior."""

from pathlib import Path
from typing import Annotated

import typer

from mmgen.cli._completion import members, words
from mmgen.cli._console import CONSOLE, is_first_process, result
from mmgen.cli._options import (
    Anew,
    Device,
    InputPath,
    KeepState,
    LogTo,
    Output,
    Reads,
    Resume,
    Seed,
    command_line,
    read_path,
    resume_mode,
)

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
            autocompletion=words("attributes", "text", "nothing"),
            show_default="text if the model generates text, else attributes",
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="WHAT",
            help="aggregate of image posteriors (CK Eq. 5), or true: p(words | z)^W p(z) (CK Eq. 3).",
            autocompletion=words("aggregate", "true"),
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
    guidance: Annotated[
        str | None,
        typer.Option(
            "--guidance",
            metavar="W",
            help="Tilt --target aggregate: q_agg(z | words) p(words | z)^W, fitted to chosen draws of q_agg.",
            show_default="0",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="With --guidance, the fitted q_agg to start from; with operators of SCAN, the fitted SCAN. If left "
            "out, fitted first, beside the model.",
            show_default=False,
        ),
        Reads("aggregate", piped=True),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            "--family",
            metavar="NAME",
            help="What is fitted: {mmgen.aggregates}.",
            autocompletion=members("mmgen.aggregates"),
            show_default="realnvp, or as --from",
        ),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers",
            metavar="WHICH",
            help="Of a model with several layers of z: all, or top, below which z is drawn from the model's p(z).",
            show_default="all",
        ),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option("--examples", min=1, help="Training examples to encode at most.", show_default="100000"),
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=0, help="Optimiser steps.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Encodings per step.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", min=1e-9, help="Step size of the optimiser.")
    ] = None,
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
        Reads("dataset"),
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
    log_to: LogTo = None,
    resume: Resume = False,
    overwrite: Anew = False,
    keep_state: KeepState = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the effective settings as JSON and leave.")] = False,
) -> None:
    """Learn the aggregate posterior q(z | description) of a trained model.

    The model stays as it is. Its training examples are encoded once and cached; a conditional density is then fitted to
    the encodings. Attributes are dropped at random meanwhile, so one aggregate answers any partial description;
    captions are read whole, by a recurrent network that is fitted with the density.
    """
    path = read_path(model, "model")
    mode = resume_mode(resume, overwrite)

    from mmgen.commands.workflow import plan_fit
    from mmgen.settings.config import parse_assignments

    plan = plan_fit(
        path,
        output,
        aggregate={
            "target": target,
            "given": given,
            "examples": examples,
            "text_weight": text_weight,
            "guidance": guidance,
            "layers": layers,
        },
        training={
            "device": device,
            "seed": seed,
            "keep_state": keep_state,
            "steps": steps,
            "batch": batch,
            "learning_rate": learning_rate,
            "precision": precision,
            "log_to": log_to,
        },
        family=family,
        base=read_path(base, "aggregate") if base else None,
        assignments=parse_assignments(assignments or []),
        dataset=dataset,
        latents=latents,
    )
    if dry_run:
        plan.check()
        result(plan.settings.model_dump_json(indent=2))
        return
    plan.run(command_line(), mode, CONSOLE)
    if is_first_process():
        result(plan.out)
