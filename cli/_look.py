"""The commands that look things up and check them."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmgen.cli._console import print_result, print_result_lines, print_result_table, say
from mmgen.cli._options import complete_kinds, complete_names_of_kind
from mmgen.core.errors import MmgenError, UsageError, advise_path, format_unknown_name, reason_of
from mmgen.settings.kinds import path_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mmgen.artifacts.status import FileStatus
    from mmgen.commands.show import Show
    from mmgen.testing import Outcome


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


def show_command(
    stage: "Show",
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON line on stdout.")] = False,
) -> None:
    """Print sections; to a pipe or a file lines of name and value with a tab between. With -o print its path."""
    described = stage.run()
    if as_json:
        print_result(json.dumps(described))  # which stays alone on stdout
        return
    from mmgen.artifacts.lineage import format_lineage, read_lineage

    lines = _format_sections(described, format_lineage(read_lineage(path_of(stage.file))))
    if stage.output is None:
        print_result_lines(lines, _name_value_rows(described))
    else:
        say("\n".join(lines))
        print_result(stage.output)


_SECTIONS = ("contents", "facts", "settings")
_MOST_LETTERS = 10_000
"""Letters of a value that are printed at most."""
_MOST_IN_SECTIONS = 400
"""The same for people, whom a vocabulary of thousands of words would bury."""


def _format_sections(described: dict[str, Any], tree: list[str]) -> list[str]:
    """Format facts on a file as lines of text, in sections with aligned values."""
    from mmgen.core.parsing import flatten, printable

    lines = [
        f"{described['path']}: {described['kind']}, {described['bytes']:,} bytes, seed {described['seed']}",
        f"content id {described['content_id']}, mmgen {described['program_version']}",
    ]
    lines += [f"made with: {printable(described['command'], _MOST_LETTERS)}"] if described["command"] else []
    lines += [f"trained: {described['trained']}"] if "trained" in described else []
    lines += [
        f"needs the {_format_member(one)}{'' if one['there'] else ', which is not here'}"
        for one in described["members"]
    ]
    lines += ["", "lineage", *(f"  {line}" for line in tree)]
    for title in _SECTIONS:
        rows = {
            printable(name, 200): printable(value, _MOST_IN_SECTIONS)
            for name, value in flatten(described[title]).items()
        }
        width = max(map(len, rows), default=0)
        lines += ["", title, *(f"  {name:<{width}}  {value}" for name, value in rows.items())] if rows else []
    return lines


def _name_value_rows(described: dict[str, Any]) -> list[tuple[str, str]]:
    """Return all facts on a file as rows of dotted name and value."""
    from mmgen.core.parsing import flatten, printable

    rows = [(name, str(value)) for name, value in described.items() if not isinstance(value, dict | list)]
    for title in _SECTIONS:
        rows += [(f"{title}.{name}", str(value)) for name, value in flatten(described[title]).items()]
    rows += [(f"members.{one['room']}.{one['name']}", _format_origin(one)) for one in described["members"]]
    rows += _ancestor_rows(described["parents"], "parents")
    return [(printable(name, 200), printable(value, _MOST_LETTERS)) for name, value in rows]


def _format_member(member: dict[str, Any]) -> str:
    """Format the kind, name and origin of a member that a file needs."""
    return f"{member['room']} {member['name']} of {_format_origin(member)}"


def _format_origin(member: dict[str, Any]) -> str:
    """Format the origin of a member: its file, or its distribution and version."""
    if "file" in member:
        return f"code {member['file']} (sha256 {member.get('sha256', '')[:12]})"
    return f"{member['distribution']} {member.get('version', '')}".rstrip()


def _ancestor_rows(parents: list[dict[str, Any]], name: str) -> list[tuple[str, str]]:
    """Return facts on the files from which a file was made as rows of dotted name and value."""
    rows = []
    for parent in parents:
        one = f"{name}.{parent['role']}"
        rows += [(f"{one}.{key}", str(parent[key])) for key in ("path", "content_id", "found", "command")]
        rows += _ancestor_rows(parent["parents"], f"{one}.parents")
    return rows


def status_command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder with files that mmgen made.", show_default="this one")
    ] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each file, with all reasons.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 1 unless every file is up to date.")] = False,
) -> None:
    """Print which files in a folder are out of date, from what they state about the files that they were made from.

    Each line has the kind, the name, the parents, the state, and what to do: up to date, unfinished (the training can
    continue), parent changed (another file has its name), parent missing, parent out of date, other version (of mmgen),
    needs code, or unreadable. Only headers are read; mmgen show FILE also compares contents.
    """
    from mmgen.artifacts.status import read_status

    if folder.is_file():
        raise UsageError(f"{folder} is a file, expected a folder; mmgen show {folder} prints its lineage")
    try:
        files = read_status(folder)
    except OSError as error:
        advice = advise_path(folder, "check the path")
        raise MmgenError(f"cannot read the folder {folder}: {reason_of(error)}; {advice}") from None
    _print_status(folder, files, as_json)
    if exit_code and any(file.problems for file in files):
        raise typer.Exit(1)


def _print_status(folder: Path, files: "Sequence[FileStatus]", as_json: bool) -> None:
    if as_json:
        for file in files:
            print_result(json.dumps(file.to_json()))
        return
    if not files:
        say(f"there are no files of mmgen in {folder.resolve()}")
        return
    rows = []
    for file in files:
        parents = ", ".join(f"{one.role} {Path(one.path).name or one.content_id[:12]}" for one in file.parents)
        remedy = file.problems[0].remedy if file.problems else ""
        rows.append((file.kind or "?", file.path.name, parents, file.state, remedy))
    print_result_table("", ("kind", "file", "made from", "state", "what to do"), rows)


def check_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.py", show_default=False, help="Python file with members; it is run.")
    ],
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            show_default=False,
            help="Setting of the file's dataset recipes, such as one that makes them small; repeatable.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each member.")] = False,
) -> None:
    """Check your own objectives, networks, recipes, metrics ... by the tests that mmgen's own members pass.

    Prints a line for each member that the file defines: its kind, its name, and "passed" or the first check that fails.
    The exit code is 1 if any fails. Kinds without checks, such as figures, are only imported.
    """
    from mmgen.settings.config import parse_assignments
    from mmgen.testing import check_file

    settings, outcomes = parse_assignments(assignments or []), []
    for outcome in check_file(file, **settings):
        outcomes.append(outcome)
        _print_outcome(outcome, as_json)
    if failed := [str(outcome.member) for outcome in outcomes if outcome.failure]:
        raise MmgenError(
            f"{len(failed)} of {len(outcomes)} members of {file} failed: {', '.join(failed)}; fix the file and check "
            "it again"
        )


def _print_outcome(outcome: "Outcome", as_json: bool) -> None:
    member = outcome.member
    result = "failed" if outcome.failure else "passed" if outcome.has_checks else "imported"
    if as_json:
        values = {"kind": member.room, "name": member.name, "result": result, "failure": outcome.failure}
        print_result(json.dumps(values))
        return
    cells = [member.room, member.name, result, *([outcome.failure] if outcome.failure else [])]
    print_result_lines([f"{member}: {result}", *([f"  {outcome.failure}"] if outcome.failure else [])], [cells])


def env_command(
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON line.")] = False,
) -> None:
    """Print versions, devices and plug-ins for a bug report, without names of people or folders."""
    from mmgen.commands import describe_environment
    from mmgen.core.parsing import flatten

    facts = describe_environment()
    if as_json:
        print_result(json.dumps(facts))
        return
    rows = [(name, value or "none") for name, value in flatten(facts).items()]
    width = max(len(name) for name, _ in rows)
    print_result_lines([f"{name:<{width}}  {value}" for name, value in rows], rows)
