"""``mmgen list``: everything that can be named on the command line."""

import json
from importlib import resources
from typing import Annotated

import typer

from mmgen.cli._console import result, result_lines, result_table

__all__ = ["list_command"]

# What a user types it after, and the package whose files are the members.
_ROOMS = {
    "recipe": "mmgen.data_recipes",
    "model": "mmgen.models",
    "network": "mmgen.networks",
    "likelihood": "mmgen.likelihoods",
    "inference": "mmgen.inference",
    "objective": "mmgen.objectives",
    "aggregate family": "mmgen.aggregates",
    "judge network": "mmgen.classifier",
    "metric": "mmgen.metrics",
    "baseline": "mmgen.baselines",
    "figure": "mmgen.figures.plots",
}


def _describe_preset(name: str) -> str:
    """The comment that opens the preset's file."""
    text = (resources.files("mmgen") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return text.split("\n", 1)[0].removeprefix("#").strip().rstrip(".")


def _members() -> list[dict[str, str]]:
    """Every member of every room and every preset: kind, name, first sentence about it."""
    from mmgen.config import preset_names
    from mmgen.registry import Registry

    found = []
    for kind, package in _ROOMS.items():
        registry = Registry(package, kind)
        found += [{"kind": kind, "name": name, "about": registry.describe(name)} for name in registry.names()]
    found += [{"kind": "preset", "name": name, "about": _describe_preset(name)} for name in preset_names()]
    return found


def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", show_default=False, help="Only this kind, for example objective or preset."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of tables.")] = False,
) -> None:
    """List every recipe, model, network, objective, aggregate family, metric, baseline, figure and preset.

    A terminal shows tables. A pipe or a file gets a line for each: kind, name and what it is, with tabs between.
    """
    import sys

    from mmgen.errors import UsageError
    from mmgen.registry import unknown_name

    wanted = kinds = [*_ROOMS, "preset"]
    if kind is not None:
        one = kind.removesuffix("s").replace("-", " ")
        wanted = [{"family": "aggregate family", "judge": "judge network"}.get(one, one)]
        if wanted[0] not in kinds:
            raise UsageError(unknown_name("kind", kind, kinds))
    members = [member for member in _members() if member["kind"] in wanted]
    if as_json:
        for member in members:
            result(json.dumps(member))
    elif sys.stdout.isatty():
        for one in wanted:
            rows = [(member["name"], member["about"]) for member in members if member["kind"] == one]
            result_table(one.capitalize(), ("name", "what it is"), rows)
    else:
        result_lines((), [(member["kind"], member["name"], member["about"]) for member in members])
