"""``mmgen baseline``: how well labels are read off images by other means, from the same few pairs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._completion import members, presets
from mmgen.cli._console import follow, result, say, table
from mmgen.cli._options import Device, InputPath, Output, Overwrite, Seed, read_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mmgen.artifacts import Dataset
    from mmgen.baselines._base import Labels
    from mmgen.training.model_run import ExperimentSettings

__all__ = ["baseline_command"]


def baseline_command(
    dataset: InputPath,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="How the label is read: {mmgen.baselines}.",
            autocompletion=members("mmgen.baselines"),
        ),
    ] = "logistic",
    paired: Annotated[
        list[float] | None,
        typer.Option(
            "--paired",
            metavar="SHARE",
            show_default="1",
            help="Share of the training images that come with their label, as of mmgen train; repeatable.",
        ),
    ] = None,
    labelled: Annotated[
        list[int] | None,
        typer.Option(
            "--labelled",
            min=1,
            metavar="N",
            show_default=False,
            help="So many labelled training images instead, as of mmgen train; repeatable.",
        ),
    ] = None,
    output: Output = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            show_default="wu/ and the dataset's recipe",
            help="Joint model whose networks and training are used.",
            autocompletion=presets,
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ROOM.KEY=VALUE", help="One setting, over the preset; repeatable."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, show_default=False, help="Optimiser steps of networks.")
    ] = None,
    attribute: Annotated[
        str, typer.Option("--attribute", metavar="NAME", show_default=False, help="Which one, where there are several.")
    ] = "",
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="SCHEME", show_default=False, help="Split scheme, as of mmgen train."),
    ] = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Measure what mvae is compared with where few examples are paired: labels read off images by other means.

    With the dataset, split, shares and seed of mmgen train --paired it learns from exactly the same pairs, and with
    those of --labelled from the same labels: by default those that the preset says. Writes one JSON line for each
    number of them, like mmgen eval; mmgen plot weak-supervision draws both.
    """
    path = read_path(dataset, "dataset")

    from mmgen.artifacts import Dataset, check_nothing_lost, check_output, write_text_atomic
    from mmgen.baselines import get
    from mmgen.baselines._run import lines_of, measure

    out = output or Path(f"{path.stem}-{method}.jsonl")
    check_output(out, None, path)
    check_nothing_lost(out, overwrite)
    get(method)  # a wrong name is reported before anything slow
    asked = {"steps": steps, "seed": seed, "device": device}
    with Dataset.open(path) as opened:
        settings = _settings(opened, preset, assignments or [], asked, split)
        opened.split(settings.data.split, "train")
    scores = follow(measure(path, method, _supplies(paired, labelled, settings), settings, attribute))
    rows = [
        (f"{score.extra['paired']:,}", f"{score.value:.2f} ± {score.stderr:.2f} %", f"{score.n:,}") for score in scores
    ]
    table(f"{method}: labels read off test images", ("pairs", "right", "images"), rows)
    write_text_atomic(out, lines_of(scores))
    result(out)


def _supplies(paired: list[float] | None, labelled: list[int] | None, settings: "ExperimentSettings") -> "list[Labels]":
    """How many labels there are: as asked for, else as the preset says, else all."""
    from mmgen.baselines._base import Labels
    from mmgen.errors import UsageError

    if paired and labelled:
        raise UsageError(
            f"--paired got {paired[0]:g} and --labelled {labelled[0]:,}, which choose images in two ways; give one"
        )
    if not paired and not labelled and settings.data.labelled is not None:
        labelled = [settings.data.labelled]
    return [Labels(count=count) for count in labelled] if labelled else [Labels(share) for share in paired or [1.0]]


def _settings(
    dataset: "Dataset", preset: str | None, assignments: list[str], asked: "Mapping[str, object]", split: str | None
) -> "ExperimentSettings":
    """The joint model's settings: preset, --set, options, each over the one before."""
    import mmgen.config
    from mmgen import presets
    from mmgen.errors import UsageError
    from mmgen.training.model_run import complete_settings

    recipe = str(dataset.header.settings.get("recipe", ""))
    name = preset or f"wu/{recipe}"
    if preset is None and name not in presets.names():
        raise UsageError(f"--preset is not given and there is none for the recipe '{recipe}'; see mmgen list presets")
    name = mmgen.config.find_preset(name, recipe)
    if preset is None:
        say(f"networks of preset {name}")
    values = mmgen.config.merge(mmgen.config.preset(name), mmgen.config.parse_assignments(assignments))
    training = {key: value for key, value in asked.items() if value is not None}
    values = mmgen.config.merge(values, {"training": training})
    if split is not None:
        values = mmgen.config.merge(values, {"data": {"split": split}})
    return complete_settings(values, dataset)
