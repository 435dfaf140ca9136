"""``mmgen compare``: printing of its tables."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import print_result, print_result_table, say
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
    """Print tables; to a pipe or a file each number on a line, with tabs between."""
    formats = {"--csv": as_csv, "--json": as_json, "--md": as_markdown, "--latex": as_latex}
    chosen = [name for name, is_chosen in formats.items() if is_chosen]
    if len(chosen) > 1:
        raise UsageError(
            f"{' and '.join(chosen)} are given together, expected one output format; leave out all but one"
        )
    compared = stage.run()
    if chosen:
        formats_of = {"--json": compared.json_lines, "--md": compared.markdown, "--latex": compared.latex}
        print_result((compared.number_table().csv() if as_csv else formats_of[chosen[0]]()).rstrip("\n"))
        return
    if not sys.stdout.isatty():
        print_result(compared.number_table().tab_separated())
        return
    for table in compared.printable_tables():
        print_result_table(table.title, table.columns, table.rows)
    say(compared.legend())
