"""``mmgen show``: what a file is and where it comes from."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mmgen.cli._console import result, result_lines, say
from mmgen.cli._options import InputPath, OverwriteOthers, output_option, read_path

__all__ = ["show_command"]


def show_command(
    file: InputPath,
    output: Annotated[Path | None, output_option("a contact sheet (.png); without it none is drawn")] = None,
    number: Annotated[
        int | None,
        typer.Option("--number", "-n", min=1, show_default="32", help="With -o: images on the contact sheet."),
    ] = None,
    overwrite: OverwriteOthers = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON line on stdout.")] = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=2**63 - 1, show_default="0", help="With -o: which images these are."),
    ] = None,
) -> None:
    """Show what an artifact is, its lineage, settings and facts, and with -o sheet.png its images.

    The lineage is a tree of the files that it was made from, each compared with its content id (verified), only found
    where that takes reading much, or marked as damaged or missing. A pipe or a file gets lines of name and value with a
    tab between. With -o the path of the sheet is the result.
    """
    path = read_path(file, "file")

    from mmgen.artifacts.ancestors import lineage, tree_lines
    from mmgen.artifacts.contents import describe
    from mmgen.artifacts.pages import check_page
    from mmgen.core.errors import UsageError

    options = {"--number": number, "--seed": seed, "--overwrite": overwrite}
    if output is not None:
        check_page(output, "picture", overwrite, path)
    elif asked := [name for name, value in options.items() if value is not None and value is not False]:
        raise UsageError(f"{' and '.join(asked)} got no contact sheet to go with; name one with -o sheet.png")
    described = describe(path)
    if as_json:
        result(json.dumps(described))
    else:
        people = _for_people(described, tree_lines(lineage(path)))
        if output is None:
            result_lines(people, _plain(described))
        else:
            say("\n".join(people))
    if output is not None:
        from mmgen.figures.report.show import contact_sheet  # draws, which needs everything

        contact_sheet(path, number or 32, seed or 0).save(output)
        if not as_json:  # the line of JSON stays alone on stdout
            result(output)


_SECTIONS = ("contents", "facts", "settings")
_LONGEST = 10_000
"""Letters of a value that are shown."""


def _for_people(described: dict[str, Any], tree: list[str]) -> list[str]:
    """Lines of text, sections with their values aligned."""
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


def _plain(described: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and value of everything, names as of ``--json`` with dots between."""
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
    """Where a member comes from, as ``mmgen list`` says it."""
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
