"""Experiment files: those of the package by name, those of others, and what these may not say."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from mmgen.artifacts import read_header
from mmgen.artifacts.containers import add_article
from mmgen.commands import stage_names
from mmgen.core.errors import SettingsError, UsageError, clip, format_unknown_name
from mmgen.core.parsing import parse_toml
from mmgen.core.worlds import data_files
from mmgen.experiments._matrix import expand_rows
from mmgen.experiments._stages import Plan, Scale, Stage
from mmgen.settings.config import read_toml, validate
from mmgen.settings.extends import resolve_extends
from mmgen.settings.registry import registry_of


def experiment_names() -> list[str]:
    """Return the names of the experiments that mmgen comes with: "cremer-table1", "wu-table2/mnist"."""
    return sorted(name for name in _files() if not name.startswith("_"))


def _files() -> dict[str, Path]:
    return {
        name: file
        for pattern in ("*.toml", "*/*.toml")
        for name, file in data_files("mmgen.experiments", Path(__file__).parent, pattern).items()
    }


def datasets_of_table(table: str) -> list[str]:
    """Return the datasets for which mmgen has an experiment file of this table; [] if there is one file for all."""
    return [name.split("/")[1] for name in experiment_names() if name.startswith(f"{table}/")]


def experiment_text(name: str) -> str:
    """Return the text (TOML) of an experiment file that mmgen comes with."""
    return _files()[name].read_text(encoding="utf-8")


def default_dataset_of(table: str) -> str | None:
    """Return the dataset on which a table is reproduced by default; None if there is only one."""
    for dataset in datasets_of_table(table):
        if parse_toml(experiment_text(f"{table}/{dataset}")).get("usual"):
            return dataset
    return None


ENDINGS = (".h5", ".safetensors", ".jsonl", ".png", ".pdf", ".svg", ".html", ".md")
"""Endings of the files that a stage may make."""
REFUSED = {
    "code": "runs a file",
    "scheduler": "names a place that runs code",
    "log_to": "sends the log elsewhere",
    "overwrite": "replaces what is there",
    "resume": "goes on from what is there",
    "keep_state": "leaves a file beside its own",
}
"""Settings that a stage may not have, under any name of a table, and what they do."""

_REFUSED = re.compile(rf"\b(?:{'|'.join(REFUSED)})\b")
_BEGINS = r"""(?:^|[=+,:;\s"'\[{(])"""
_OUTSIDE = re.compile(rf"""{_BEGINS}(?:/|~|[A-Za-z]:/|file:)|(?:{_BEGINS}|/)\.\.(?:$|[/=+,;\s"'\]}})])|\\""")
"""A path that leads out of the folder; a backslash may spell one."""
_RECIPE = re.compile(r"[a-z0-9-]+")
"""A name as recipes have, and no path of a file."""


def check_outside_plan(plan: Plan, name: str) -> None:
    """Refuse a user's experiment file with options, recipes or paths that are not safe to run."""
    for size, scale in plan.scale.items():
        if not PurePath(scale.folder).parts or "\0" in scale.folder or _OUTSIDE.search(scale.folder):
            raise UsageError(
                f"{name}: scale '{size}' has the folder {_quote(scale.folder)}, expected a folder below "
                "the current one; choose another with --output"
            )
        for number, stage in enumerate(scale.stage, 1):
            if fault := next(_forbidden_parts(stage), None):
                raise UsageError(
                    f"{name}: stage {number} of '{size}' {fault}; an experiment from outside the package may not do "
                    "that: edit it, and type that command yourself if you trust it"
                )


def _forbidden_parts(stage: Stage) -> Iterator[str]:
    """Yield a phrase for each unsafe option, recipe or path of a stage."""
    recipes = registry_of("recipe")
    for recipe in {*stage.arguments} & {*recipes.names()} if stage.is_data else ():
        if recipes.get(recipe).fetches_anything:
            yield f"makes data by {recipe}, which downloads whatever is named"
    for text, is_key in _nested_texts(stage.settings):
        if is_key and (refused := _REFUSED.search(text.replace("-", "_"))):
            yield f"says {refused[0]}, and that {REFUSED[refused[0]]}"
        if _OUTSIDE.search(text):
            yield f"says {_quote(text)}, which leads out of its folder"
    if _OUTSIDE.search(stage.makes) or PurePath(stage.makes).suffix not in ENDINGS or stage.makes[:1] in (".", "-"):
        yield f"makes {_quote(stage.makes)}, no file of its folder that ends in {', '.join(ENDINGS)}"


def _nested_texts(value: Any) -> Iterator[tuple[str, bool]]:
    """Yield (text, is_key) for every text in nested values."""
    if isinstance(value, str):
        yield value, False
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield key, True
            yield from _nested_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _nested_texts(inner)


def _quote(text: str) -> str:
    """Quote text from a file for a message, on one line and of bounded length."""
    return repr(clip(text, 100))


def read_plan(name: str) -> Plan:
    """Read an experiment by its name, or a user's experiment file by its path, which may do less.

    Raises:
        UsageError: There is neither, or the file asks for what it may not (:func:`check_outside_plan`).
        SettingsError: The file is no experiment; names every fault.
    """
    if name in experiment_names():
        return _make_packaged(name)
    if not name.endswith(".toml"):
        unknown = format_unknown_name("table", name, experiment_names(), list_command="mmgen reproduce --help")
        raise UsageError(f"{unknown}, or the path of an experiment file of your own (.toml)")
    values = read_toml(Path(name))
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
    return _make_packaged(f"_{name}", let).get_scale(scale).stage


def lacking_commands(name: str) -> list[str]:
    """Return the commands of a packaged list that this installation lacks, whose stages are left out."""
    return _lacking(_merge(parse_toml(experiment_text(name)), name))


def _lacking(values: Mapping[str, Any]) -> list[str]:
    return sorted({stage["command"] for stage in values.get("stage", [])} - {*stage_names()})


def _make_packaged(name: str, let: Mapping[str, Any] | None = None) -> Plan:
    """Make the plan of a packaged list, without what needs commands that this installation lacks."""
    values = _merge(parse_toml(experiment_text(name)), name)
    values["let"] = values.get("let", {}) | dict(let or {})
    return validate(Plan, expand_rows(_leave_out(values, {*_lacking(values)})))


def _leave_out(value: Any, commands: set[str]) -> Any:
    """Leave out the stages of some commands, the settings that are called like these, and the rows of their scores."""
    if isinstance(value, Mapping):
        return {key: _leave_out(inner, commands) for key, inner in value.items() if key not in commands}
    if isinstance(value, list):
        kept = [one for one in value if not isinstance(one, Mapping) or commands.isdisjoint(_commands_of(one))]
        return [_leave_out(one, commands) for one in kept]
    return value


def _commands_of(part: Mapping[str, Any]) -> set[Any]:
    """Return the command of a stage; of a row the protocol, which is called like the command that measures by it."""
    return {part.get("command"), part.get("protocol")}


def _make_plan(values: dict[str, Any], name: str) -> Plan:
    """Check the values of a user's experiment file and return the plan."""
    return validate(Plan, expand_rows(_merge(values, name)))


def _merge(values: dict[str, Any], name: str) -> dict[str, Any]:
    return resolve_extends(values, f"list {name}", _read_packaged, "list")


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
        elif data is not None and _RECIPE.fullmatch(data) and not Path(data).exists():
            known = f"expected {' or '.join(offered)}" if offered else "but it has one alone"
            otherwise = "leave --data out for the usual one, or give the file of a dataset"
            raise UsageError(f"{name} has no dataset '{data}', {known}; {otherwise}")
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
