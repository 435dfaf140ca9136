"""Experiment files: finding and reading one, choosing some of its stages, printing them as a shell script."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.artifacts import read_header
from mmgen.artifacts.containers import add_article
from mmgen.core.errors import SettingsError, UsageError, format_unknown_name
from mmgen.core.parsing import parse_toml
from mmgen.experiments import datasets_of_table, default_dataset_of, experiment_names, experiment_text
from mmgen.experiments._foreign import check_outside_plan, check_text
from mmgen.experiments._matrix import expand_rows
from mmgen.experiments._stages import Plan, Scale, Stage
from mmgen.settings.config import read_toml, validate
from mmgen.settings.extends import resolve_extends

__all__ = [
    "check_is_dataset",
    "comment_lines",
    "find_experiment",
    "select_rows",
    "packaged_stages",
    "read_plan",
    "shell_script",
    "use_dataset",
]


def read_plan(name: str) -> Plan:
    """Read an experiment by its name, or a user's experiment file by its path, which may do less.

    Raises:
        UsageError: There is neither, or the file asks for what it may not (:func:`check_outside_plan`).
        SettingsError: The file is no experiment; names every fault.
    """
    if name in experiment_names():
        return _make_plan(_read_packaged(name), name)
    if not name.endswith(".toml"):
        unknown = format_unknown_name("table", name, experiment_names(), list_command="mmgen reproduce --help")
        raise UsageError(f"{unknown}, or the path of an experiment file of your own (.toml)")
    values = read_toml(Path(name))
    check_text(values, name)
    try:
        plan = _make_plan(values, name)
    except UsageError as error:
        raise SettingsError(f"{name}: {error}") from None
    check_outside_plan(plan, name)
    return plan


def packaged_stages(name: str, scale: str, let: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Return the stages of a file of the package that reproduces no table, such as the quickstart's.

    Args:
        name: Name of the file, without its underscore: "quickstart".
        scale: One of its scales.
        let: Values of names, in place of those of the file.
    """
    values = parse_toml(experiment_text(f"_{name}"))
    values["let"] = values.get("let", {}) | dict(let)
    return _make_plan(values, name).get_scale(scale).stage


def _make_plan(values: dict[str, Any], name: str) -> Plan:
    """Check the values of an experiment file and return the plan."""
    return validate(Plan, expand_rows(resolve_extends(values, f"list {name}", _read_packaged, "list")))


def _read_packaged(name: str) -> dict[str, Any]:
    """Read the values of an experiment file of the package."""
    if name not in experiment_names():
        raise UsageError(format_unknown_name("list", name, experiment_names()))
    return parse_toml(experiment_text(name))


def find_experiment(name: str, data: str | None) -> tuple[str, Path | None]:
    """Return the full name of the experiment for ``data``, and the user's dataset file if ``data`` names one.

    Args:
        name: An experiment, or a table of several datasets ("wu-table2"). A table may be both: its own file is then
            that of the usual dataset.
        data: One of the table's datasets by name ("mnist"); a dataset file, whose recipe says which; None for the
            usual one.

    Raises:
        UsageError: The table has several datasets, and ``data`` is none of them.
    """
    offered = datasets_of_table(name)
    if data not in offered and (not offered or name in experiment_names()):
        if data is not None and Path(data).exists() and name in experiment_names():
            settings = read_header(Path(data)).settings
            _check_published_data(Path(data), settings)
            name = f"{name}/{settings['recipe']}" if settings.get("recipe") in offered else name
        return name, Path(data) if data is not None else None
    if data is None and (usual := default_dataset_of(name)) is not None:
        data = usual
    if data in offered:
        return f"{name}/{data}", None
    if data is not None and Path(data).exists():
        check_is_dataset(Path(data))
        settings = read_header(Path(data)).settings
        recipe = str(settings.get("recipe", ""))
        _check_published_data(Path(data), settings)
        if recipe in offered:
            return f"{name}/{recipe}", Path(data)
        raise UsageError(
            f"--data got {data}, a dataset of the recipe '{recipe}', expected one of {' or '.join(offered)}"
        )
    got = f"--data got '{data}'" if data else "--data is not given"
    raise UsageError(f"{name} is measured on several datasets and {got}, expected {' or '.join(offered)}, or a file")


def _check_published_data(path: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a dataset whose settings differ from those of the published numbers."""
    if content := settings.get("content"):
        raise UsageError(
            f"--data got {path}, which is {content}, expected the data of the published numbers; make the "
            "dataset from those, or train on this one by commands of your own"
        )


def check_is_dataset(path: Path) -> None:
    """Raise an error if the file given as --data is no dataset.

    Raises:
        UsageError: It is something else.
        ArtifactError: It cannot be read.
    """
    if (kind := read_header(path).kind) != "dataset":
        raise UsageError(f"--data got {path}, which is {add_article(kind)}, expected a dataset of mmgen make-data")


def select_rows(scale: Scale, rows: Sequence[str]) -> Scale:
    """Keep only the stages that are needed for some rows of the table.

    Raises:
        UsageError: A row has no stages of its own.
    """
    known = list(dict.fromkeys(stage.of for stage in scale.stage if stage.of))
    by_name = {name.casefold(): name for name in known}
    for row in rows:
        if row.casefold() not in by_name:
            raise UsageError(
                format_unknown_name("row", row, known)
                if known
                else f"--only got '{row}', but the rows of this table share all of its stages; leave the option out"
            )
    chosen = {"", *(by_name[row.casefold()] for row in rows)}
    stages: list[Stage] = []
    needed: set[str] = set()
    for stage in reversed(scale.stage):
        if stage.of in chosen or stage.makes in needed:
            stages.insert(0, stage)
            needed |= set(stage.possible_inputs)
    return scale.model_copy(update={"stage": tuple(stages)})


def use_dataset(scale: Scale, data: Path) -> Scale:
    """Replace the dataset that the stages make by a file of the user.

    Raises:
        UsageError: The experiment makes several.
    """
    made = [stage.makes for stage in scale.stage if stage.is_data]
    if len(made) > 1:
        raise UsageError(
            f"--data got {data}, but this experiment makes {len(made)} datasets, {made[0]} and others; leave "
            "the option out"
        )
    names = dict.fromkeys(made, str(data.resolve()))
    stages = tuple(stage.rename_files(names) for stage in scale.stage if not stage.is_data)
    return scale.model_copy(update={"stage": stages})


def shell_script(plan: Plan, scale: Scale, folder: Path) -> str:
    """Return a shell script with the commands of all stages."""
    lines = ["#!/bin/sh", *comment_lines(plan.title), *comment_lines(plan.source), *comment_lines(scale.about)]
    lines += ["set -eu", f"mkdir -p {shlex.quote(str(folder))}", f"cd {shlex.quote(str(folder))}", ""]
    for stage in scale.stage:
        lines += [*comment_lines(stage.why), stage.command_line, ""]
    return "\n".join(lines)


def comment_lines(text: str) -> list[str]:
    """Format text as comment lines of a shell script."""
    return [f"# {line}" for line in text.splitlines()]
