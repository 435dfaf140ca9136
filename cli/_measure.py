"""What the commands that measure print: tables, and lines with tabs between for pipes."""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from mmgen.cli._console import (
    print_result,
    print_result_lines,
    print_result_table,
    print_table,
    say,
)
from mmgen.cli._streams import ignore_first_interrupt
from mmgen.core.errors import UsageError

if TYPE_CHECKING:
    from mmgen.commands.compare import Compare
    from mmgen.commands.evaluate import Evaluate
    from mmgen.results.score import Score


def eval_command(
    stage: "Evaluate",
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON lines on stdout; the table then goes to stderr.")
    ] = False,
) -> None:
    """Print a table with standard errors, and the judge's own accuracy on real images beside every score that it
    gives. A pipe or a file gets lines of metric, quantity, posterior, protocol, number of given attributes, value,
    standard error, unit, number of samples and judge, with tabs between. With --output only its path is printed, and
    with --json no file is kept without it.
    """
    from mmgen.evaluation import write_scores

    path = None if as_json and stage.output is None else stage.scores_path("use --json to keep no file, ")
    scores = stage.measure()
    # The file first: an error in printing must not lose the scores.
    with ignore_first_interrupt():
        if path:
            write_scores(path, scores)
        if as_json:
            for score in scores:
                print_result(json.dumps(score.to_json(), allow_nan=False))
        elif stage.output:
            print_result(path)
        show_scores(scores, as_result=not as_json and stage.output is None)
        if path and not stage.output:
            say(f"scores written to {path}")


def _score_rows(scores: Sequence["Score"]) -> list[list[str]]:
    """Return the scores as rows of cells, with unrounded numbers."""
    from mmgen.results.score import classifier_names

    lines = []
    for score, judge in zip(scores, classifier_names(scores), strict=True):
        values: list[object] = [score.metric, score.quantity, score.source, score.protocol, score.given]
        values += [score.value, score.stderr, score.unit, score.n, judge]
        lines.append(["" if value is None else str(value) for value in values])
    return lines


def show_scores(scores: Sequence["Score"], as_result: bool) -> None:
    """Print a table for each metric, on stdout if ``as_result`` and else on stderr, and the scores' warnings."""
    from mmgen.metrics import get, names
    from mmgen.results.score import tabulate_scores

    if as_result and not sys.stdout.isatty():
        print_result_lines((), _score_rows(scores))
    else:
        print_scores = print_result_table if as_result else print_table
        for name, unit in dict.fromkeys((score.metric, score.unit) for score in scores):
            rows = [score for score in scores if (score.metric, score.unit) == (name, unit)]
            table = tabulate_scores(rows, name, get(name).columns if name in names() else {})
            print_scores(f"{name}, nats per example" if unit == "nats" else name, table.columns, table.rows)
    print_warnings(scores)


def print_warnings(scores: Sequence["Score"]) -> None:
    """Print each warning of scores once, with the quantities that it is about."""
    quantities_by_warning: dict[str, list[str]] = {}
    for score in scores:
        for text in score.warnings:
            quantities_by_warning.setdefault(text, []).append(
                f"{score.quantity} ({score.protocol}) under {score.source}"
            )
    for text, quantities in quantities_by_warning.items():
        say(f"{', '.join(dict.fromkeys(quantities))}: {text}")  # as often as there are judges and numbers of words


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
