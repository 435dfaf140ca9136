"""``mmgen baseline``: how well labels are read off images, or real numbers are modelled, by other means."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmgen.cli._completion import members, presets
from mmgen.cli._console import follow, result, say, table
from mmgen.cli._ending import last_moments
from mmgen.cli._options import Device, InputPath, Output, Overwrite, Seed, read_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mmgen.artifacts import Dataset
    from mmgen.baselines import LabelSupply
    from mmgen.results.score import Score
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
            help="How it is answered: {mmgen.baselines}.",
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
        typer.Option(
            "--set", metavar="KEY=VALUE", help="One setting, ROOM.KEY over the preset or a density's own; repeatable."
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, show_default=False, help="Optimiser steps of networks.")
    ] = None,
    attribute: Annotated[
        str, typer.Option("--attribute", metavar="NAME", show_default=False, help="Which one, where there are several.")
    ] = "",
    modality: Annotated[
        str,
        typer.Option("--modality", metavar="NAME", show_default=False, help="Which numbers a density is of."),
    ] = "",
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="SCHEME", show_default=False, help="Split scheme, as of mmgen train."),
    ] = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Measure what models are compared with: labels read off images, or log p(x) of real numbers, by other means.

    Label readers, with the dataset, split, shares and seed of mmgen train --paired, learn from exactly the same pairs,
    and with those of --labelled from the same labels: by default those that the preset says. They write one JSON line
    for each number of them, which mmgen plot weak-supervision draws. Densities are fitted to the training part and say
    log p(x) of the test part, a JSON line like that of mmgen eval --metric log-likelihood.
    """
    path = read_path(dataset, "dataset")

    from mmgen.artifacts import check_nothing_lost, check_output, write_text_atomic
    from mmgen.baselines import get, lines_of

    member = get(method)
    out = output or path.with_name(f"{path.stem}-{method}.jsonl")
    check_output(out, None, path)
    check_nothing_lost(out, overwrite)
    if member.answers == "densities":
        wrong = {"--paired": paired, "--labelled": labelled, "--preset": preset, "--steps": steps}
        wrong |= {"--attribute": attribute, "--device": device if device != "auto" else None}
        _refuse(method, "densities", wrong)
        scores = _densities(path, method, assignments or [], split, seed, modality)
    else:
        _refuse(method, "labels", {"--modality": modality})
        networks = member.networks
        if not networks:
            _refuse_training(method, steps, assignments or [])
        asked = {"steps": steps, "seed": seed, "device": device}
        settled = (preset, assignments or [], asked, split, networks)
        scores = _labels(path, method, (paired, labelled), settled, attribute)
    with last_moments():
        write_text_atomic(out, lines_of(scores))
        result(out)


def _refuse(method: str, answers: str, options: "Mapping[str, object]") -> None:
    """Refuse options that a method of this kind would ignore."""
    from mmgen.core.errors import UsageError

    typed = [name for name, value in options.items() if value]
    if typed:
        others = "labels" if answers == "densities" else "densities"
        raise UsageError(
            f"{method} answers {answers}, and {' and '.join(typed)} is for baselines that answer {others}; leave it out"
        )


_OF_NETWORKS = ("model.", "objective.", "training.")
_OF_ALL = ("training.seed", "training.device")


def _refuse_training(method: str, steps: int | None, assignments: list[str]) -> None:
    """Refuse settings of networks and of their training, which a method that trains none would ignore."""
    from mmgen.baselines import importable
    from mmgen.core.errors import UsageError

    typed = ["--steps"] * (steps is not None)
    for assignment in assignments:
        key = assignment.partition("=")[0].strip()
        if key.startswith(_OF_NETWORKS) and key not in _OF_ALL:
            typed.append(f"--set {key}")
    if typed:
        others = [name for name, member in importable().items() if member.networks]
        raise UsageError(
            f"{method} trains no networks, so {' and '.join(typed)} would change nothing; leave it out, or choose a "
            f"--method that does: {', '.join(others)}"
        )


def _labels(
    path: Path,
    method: str,
    counts: tuple[list[float] | None, list[int] | None],
    settled: tuple[Any, ...],
    attribute: str,
) -> "list[Score]":
    """Labels read off test images, shown as a table."""
    from mmgen.artifacts import Dataset
    from mmgen.baselines import measure

    with Dataset.open(path) as opened:
        settings = _settings(opened, *settled)
        opened.split(settings.data.split, "train")
    scores = follow(measure(path, method, _supplies(*counts, settings), settings, attribute))
    rows = [(f"{score.details['paired']:,}", score.number_with_unit, f"{score.n:,}") for score in scores]
    table(f"{method}: labels read off test images", ("pairs", "right", "images"), rows)
    return scores


def _densities(
    path: Path, method: str, assignments: list[str], split: str | None, seed: int, modality: str
) -> "list[Score]":
    """log p of test examples, shown as a table."""
    from mmgen.baselines import measure_density
    from mmgen.results.number import Number
    from mmgen.settings.config import parse_assignments

    scores = follow(measure_density(path, method, parse_assignments(assignments), split, seed, modality))
    rows = []
    for score in scores:
        bits, error = (score.details.get(name) for name in ("bits_per_pixel", "bits_per_pixel_stderr"))
        rows.append((score.number_with_unit, "" if bits is None else Number(bits, error), f"{score.n:,}"))
    clusters = {score.points.units for score in scores if score.points and score.points.clusters}
    errors = f"; errors over the {max(clusters):,} pictures or sources that they are of" if clusters else ""
    table(f"{method}: log p(x) of test examples{errors}", ("log p(x)", "bits per pixel", "examples"), rows)
    return scores


def _supplies(
    paired: list[float] | None, labelled: list[int] | None, settings: "ExperimentSettings"
) -> "list[LabelSupply]":
    """How many labels there are: as asked for, else as --set or the preset says, else all."""
    from mmgen.baselines import LabelSupply
    from mmgen.core.errors import UsageError

    if paired and labelled:
        raise UsageError(
            f"--paired got {paired[0]:g} and --labelled {labelled[0]:,}, which choose images in two ways; give one"
        )
    if not paired and not labelled and settings.data.labelled is not None:
        labelled = [settings.data.labelled]
    if labelled:
        return [LabelSupply(count=count) for count in labelled]
    return [LabelSupply(share) for share in paired or [settings.data.paired]]


def _settings(
    dataset: "Dataset",
    preset: str | None,
    assignments: list[str],
    asked: "Mapping[str, object]",
    split: str | None,
    networks: bool,
) -> "ExperimentSettings":
    """The joint model's settings: preset, --set, options, each over the one before."""
    import mmgen.settings.config
    import mmgen.settings.extends
    from mmgen.core.errors import UsageError
    from mmgen.settings import presets
    from mmgen.training.model_run import complete_settings

    recipe = str(dataset.header.settings.get("recipe", ""))
    name = preset or f"wu/{recipe}"
    if preset is None and name not in presets.names():
        raise UsageError(f"--preset is not given and there is none for the recipe '{recipe}'; see mmgen list presets")
    name = mmgen.settings.config.find_preset(name, recipe)
    if preset is None:
        say(f"{'networks' if networks else 'data settings'} of preset {name}")
    values = mmgen.settings.config.merge(
        mmgen.settings.extends.preset(name), mmgen.settings.config.parse_assignments(assignments)
    )
    training = {key: value for key, value in asked.items() if value is not None}
    values = mmgen.settings.config.merge(values, {"training": training})
    if split is not None:
        values = mmgen.settings.config.merge(values, {"data": {"split": split}})
    return complete_settings(values, dataset)
