"""``mmgen show``: printing of a file's contents."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmgen.cli._console import result, result_lines, say
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
        result(json.dumps(described))  # which stays alone on stdout
        return
    from mmgen.artifacts.ancestors import lineage, tree_lines

    people = _for_people(described, tree_lines(lineage(path_of(stage.file))))
    if stage.output is None:
        result_lines(people, _flat_rows(described))
    else:
        say("\n".join(people))
        result(stage.output)


_SECTIONS = ("contents", "facts", "settings")
_LONGEST = 10_000
"""Letters of a value that are shown."""


def _for_people(described: dict[str, Any], tree: list[str]) -> list[str]:
    """Return lines of text, in sections with aligned values."""
    from mmgen.core.parsing import flat, printable

    lines = [
        f"{described['path']}: {described['kind']}, {described['bytes']:,} bytes, seed {described['seed']}",
        f"content id {described['content_id']}, mmgen {described['program_version']}",
    ]
    lines += [f"made with: {printable(described['command'], _LONGEST)}"] if described["command"] else []
    lines += [f"trained: {described['trained']}"] if "trained" in described else []
    lines += [f"needs the {_what(one)}{'' if one['there'] else ', which is not here'}" for one in described["members"]]
    lines += ["", "lineage", *(f"  {line}" for line in tree)]
    for title in _SECTIONS:
        rows = {printable(name, 200): printable(value, _LONGEST) for name, value in flat(described[title]).items()}
        width = max(map(len, rows), default=0)
        lines += ["", title, *(f"  {name:<{width}}  {value}" for name, value in rows.items())] if rows else []
    return lines


def _flat_rows(described: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name and value of everything, with the dotted names of ``--json``."""
    from mmgen.core.parsing import flat, printable

    rows = [(name, str(value)) for name, value in described.items() if not isinstance(value, dict | list)]
    for title in _SECTIONS:
        rows += [(f"{title}.{name}", str(value)) for name, value in flat(described[title]).items()]
    rows += [(f"members.{one['room']}.{one['name']}", _from(one)) for one in described["members"]]
    rows += _parents(described["parents"], "parents")
    return [(printable(name, 200), printable(value, _LONGEST)) for name, value in rows]


def _what(member: dict[str, Any]) -> str:
    return f"{member['room']} {member['name']} of {_from(member)}"


def _from(member: dict[str, Any]) -> str:
    """Format the origin of a member, as ``mmgen list`` does."""
    if "file" in member:
        return f"code {member['file']}"
    return f"{member['distribution']} {member.get('version', '')}".rstrip()


def _parents(parents: list[dict[str, Any]], name: str) -> list[tuple[str, str]]:
    rows = []
    for parent in parents:
        one = f"{name}.{parent['role']}"
        rows += [(f"{one}.{key}", str(parent[key])) for key in ("path", "content_id", "found", "command")]
        rows += _parents(parent["parents"], f"{one}.parents")
    return rows
