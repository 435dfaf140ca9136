"""``mmgen show``: printing of a file's contents."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmgen.cli._console import print_result, print_result_lines, say
from mmgen.settings.kinds import path_of

if TYPE_CHECKING:
    from mmgen.commands.show import Show

__all__ = ["show_command"]


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
