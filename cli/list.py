"""``mmgen list``: everything that can be named on the command line."""

import json
import re
from dataclasses import asdict
from typing import Annotated

import typer

from mmgen.cli._console import print_result, print_result_lines, print_result_table, say
from mmgen.cli._options import complete_kinds, complete_names_of_kind

__all__ = ["list_command"]


def _list_members() -> tuple[list[dict[str, str]], list[str]]:
    """Return a row for each member and preset (kind, name, about, origin), and sentences on unusable members."""
    from mmgen.settings import presets
    from mmgen.settings.registry import list_registries, list_unknown_group_warnings

    members, faults = [], list_unknown_group_warnings()
    for room in list_registries():
        for member in room.members():
            about, origin = member.about(), str(member.origin)
            members.append({"kind": room.noun, "name": member.name, "about": about, "origin": origin})
            if member.fault:
                faults.append(f"{room.noun} '{member.name}' of {origin} cannot be used: {member.fault}")
    members += [
        {"kind": "preset", "name": name, "about": presets.describe_preset(name), "origin": "mmgen"}
        for name in presets.preset_names()
    ]
    return members, list(dict.fromkeys(faults))


def _show_settings(kind: str, name: str, as_json: bool) -> None:
    """Print the settings of one member, or a whole preset."""
    import sys

    from mmgen.settings.config import find_preset
    from mmgen.settings.extends import format_preset_with_origins, load_preset
    from mmgen.settings.registry import list_registries
    from mmgen.settings.settings_table import list_member_settings

    if kind == "preset":
        full = find_preset(name)
        print_result(json.dumps(load_preset(full)) if as_json else format_preset_with_origins(full).rstrip("\n"))
        return
    room = next(room for room in list_registries() if room.noun == kind)
    settings = list_member_settings(kind, room.get(name))
    about = room.describe(name)
    if as_json:
        for one in settings:
            print_result(json.dumps({"kind": kind, "of": name, **asdict(one)}))
    elif sys.stdout.isatty():
        rows = [(one.name, one.kind, one.default, one.about) for one in settings]
        print_result_table(f"{kind.capitalize()} {name}: {about}", ("setting", "type", "default", "what it does"), rows)
    else:
        print_result_lines((), [[one.name, one.kind, one.default, one.about] for one in settings])
    if not settings:
        say(f"{kind} {name} has no settings: {about}")


def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            show_default=False,
            help="Only this kind, for example objective or preset.",
            autocompletion=complete_kinds,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="Only this one, with every setting that it has.",
            autocompletion=complete_names_of_kind,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of tables.")] = False,
) -> None:
    """List every recipe, model, network, objective, aggregate family, metric, baseline, figure and preset.

    A terminal shows tables. A pipe or a file gets a line for each: kind, name, what it is and where it comes from, with
    tabs between. That is mmgen, or the installed package, or the file of --code, that brings the member.

    With a name, as in mmgen list objective telbo, it prints the settings of that one: what --set calls it, type and
    range, default, and what it does. For a preset it prints all values, each with its source.
    """
    import sys

    from mmgen.core.errors import UsageError, format_unknown_name
    from mmgen.settings.registry import list_registries

    selected = kinds = [*(room.noun for room in list_registries()), "preset"]
    if kind is not None:
        one = re.sub("ies$", "y", kind).removesuffix("s").replace("-", " ").lower()
        selected = [one] if one in kinds else [noun for noun in kinds if one in noun.split()]
        if len(selected) != 1:
            raise UsageError(format_unknown_name("kind", kind, kinds))
    if name is not None:
        _show_settings(selected[0], name, as_json)
        return
    all_members, faults = _list_members()
    members = [member for member in all_members if member["kind"] in selected]
    for fault in faults:
        say(fault)
    if as_json:
        for member in members:
            print_result(json.dumps(member))
    elif sys.stdout.isatty():
        for one in selected:
            rows = [(member["name"], member["about"], member["origin"]) for member in members if member["kind"] == one]
            print_result_table(one.capitalize(), ("name", "what it is", "from"), rows)
    else:
        keys = ("kind", "name", "about", "origin")
        print_result_lines((), [[member[key] for key in keys] for member in members])
