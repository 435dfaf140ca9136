"""``mmgen compare``: what it prints."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import result, result_lines, result_table, say
from mmgen.core.errors import UsageError

if TYPE_CHECKING:
    from mmgen.commands.compare import Compare

__all__ = ["compare_command"]


def compare_command(
    stage: "Compare",
    as_csv: Annotated[bool, typer.Option("--csv", help="Every number on a line, with a heading, as CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Every number as a JSON object on a line.")] = False,
    as_markdown: Annotated[bool, typer.Option("--md", help="Tables of Markdown.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Tables of LaTeX, with the package booktabs.")] = False,
) -> None:
    """A pipe or a file gets each number on a line, with tabs between."""
    from mmgen.cli import _comparisons

    formats = {"--csv": as_csv, "--json": as_json, "--md": as_markdown, "--latex": as_latex}
    chosen = [name for name, is_chosen in formats.items() if is_chosen]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} got all, expected one: they are ways to print the same")
    compared = stage.run()
    if chosen:
        text = {"--csv": _comparisons.csv, "--json": _comparisons.json_lines, "--md": _comparisons.markdown}
        result(text.get(chosen[0], _comparisons.latex)(compared).rstrip("\n"))
        return
    if not sys.stdout.isatty():
        result_lines((), _comparisons.plain(compared))
        return
    for table in compared.tables:
        for title, columns, rows in _comparisons.shown(table):
            result_table(title, columns, rows)
    say(_comparisons.legend(compared))
