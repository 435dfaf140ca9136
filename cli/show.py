"""``mmgen show``: what a file is and where it comes from."""

import json
from typing import Annotated, Any

import typer

from mmgen.cli._console import result, say
from mmgen.cli._options import InputPath, Output, Seed, read_path

__all__ = ["show_command"]


def show_command(
    file: InputPath,
    output: Output = None,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="Images on the contact sheet.")] = 32,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON line on stdout.")] = False,
    seed: Seed = 0,
) -> None:
    """Show what an artifact is, its lineage, settings and facts, and with -o sheet.png its images.

    The lineage is a tree of the files that it was made from, each compared with its content id
    (verified), only found where that takes reading much, or marked as damaged or missing.
    """
    from mmgen.artifacts import check_output
    from mmgen.figures.lineage import lineage, tree_lines
    from mmgen.figures.show import contact_sheet, describe
    from mmgen.parsing import printable

    path = read_path(file, "file")
    if output is not None:
        check_output(output, None, path)
    described = describe(path)
    if as_json:
        result(json.dumps(described))
    else:
        say(f"{path}: {described['kind']}, {described['bytes']:,} bytes, seed {described['seed']}")
        say(f"content id {described['content_id']}, mmgen {described['program_version']}")
        if described["command"]:
            say(f"made with: {printable(described['command'], 10_000)}")
        say("\nlineage\n" + "\n".join(f"  {line}" for line in tree_lines(lineage(path))))
        for title in ("contents", "facts", "settings"):
            _print_values(title, described[title])
    if output is not None:
        contact_sheet(path, number, seed).save(output)
        if not as_json:  # the line of JSON stays alone on stdout
            result(output)


def _print_values(title: str, values: dict[str, Any]) -> None:
    from mmgen.figures._context import flat
    from mmgen.parsing import printable

    rows = {printable(name, 200): printable(value, 10_000) for name, value in flat(values).items()}
    if rows:
        width = max(len(name) for name in rows)
        say("\n".join([f"\n{title}", *(f"  {name:<{width}}  {value}" for name, value in rows.items())]))
