"""``mmgen compare``: scores of several models and seeds side by side."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mmgen.cli._console import result, result_lines, result_table, say
from mmgen.cli._options import read_paths
from mmgen.core.errors import UsageError

__all__ = ["compare_command"]


def compare_command(
    scores: Annotated[
        list[str],
        typer.Argument(
            metavar="SCORES...",
            show_default=False,
            help="Files of mmgen eval and mmgen baseline (.jsonl), of any models and seeds; '-' reads paths from "
            "stdin. Logs of training among them are left out.",
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="NAME",
            show_default=False,
            help="Row that the others are compared with: differences, paired over seeds, with their 95 % intervals.",
        ),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Every number on a line, with a heading, as CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Every number as a JSON object on a line.")] = False,
    as_markdown: Annotated[bool, typer.Option("--md", help="Tables of Markdown.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Tables of LaTeX, with the package booktabs.")] = False,
) -> None:
    """Compare models over seeds: runs that differ only in their seed are one row, with mean, standard deviation and n.

    Each posterior with each weight of guidance is a row of its own. What is not alike in data, split, judge, protocol
    or given attributes is never in one column. Marked (*) is what no other row beats: no 95 % interval of a difference
    leaves out 0. A pipe or a file gets each number on a line, with tabs between.
    """
    from mmgen.cli import _comparisons
    from mmgen.core.parsing import LOG_ENDING
    from mmgen.results.comparing import compare_scores
    from mmgen.results.score import read_scores

    asked = [name for name, said in _ways(as_csv, as_json, as_markdown, as_latex).items() if said]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} got all, expected one: they are ways to print the same")
    named = read_paths(scores, "file of scores")
    paths = [path for path in named if not path.name.endswith(LOG_ENDING)]  # which *.jsonl names too
    if len(paths) < len(named):
        say(f"logs of training are no scores, and are left out: {len(named) - len(paths)} of {len(named)} files")
    found = [read_scores(path) for path in paths]
    if not found:
        raise UsageError(f"{', '.join(map(str, named))}: there is no score in these files; make some with mmgen eval")
    try:
        compared = compare_scores(list(zip(_names(paths), found, strict=True)), against or "")
    except ValueError as error:
        raise UsageError(f"--against: {error}") from None
    for note in compared.notes:
        say(note)
    if as_csv or as_json or as_markdown or as_latex:
        text = {"--csv": _comparisons.csv, "--json": _comparisons.json_lines, "--md": _comparisons.markdown}
        result(text.get(asked[0], _comparisons.latex)(compared).rstrip("\n"))
        return
    if not sys.stdout.isatty():
        result_lines((), _comparisons.plain(compared))
        return
    for table in compared.tables:
        for title, columns, rows in _comparisons.shown(table):
            result_table(title, columns, rows)
    say(_comparisons.legend(compared))


def _ways(as_csv: bool, as_json: bool, as_markdown: bool, as_latex: bool) -> dict[str, bool]:
    return {"--csv": as_csv, "--json": as_json, "--md": as_markdown, "--latex": as_latex}


def _names(paths: list[Path]) -> list[str]:
    """What files are called that do not tell of their run: as shortly as tells them apart."""
    stems = [path.stem for path in paths]
    return [
        stem if stems.count(stem) == 1 else str(path.with_suffix("")) for stem, path in zip(stems, paths, strict=True)
    ]
