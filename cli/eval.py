"""``mmgen eval``: how good a model or an aggregate is, by any metrics."""

import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmgen.cli._console import result, result_lines, result_table, say, table as talk_table
from mmgen.cli._ending import last_moments

if TYPE_CHECKING:
    from mmgen.commands.evaluate import Evaluate
    from mmgen.results.score import Score

__all__ = ["eval_command"]


def eval_command(
    stage: "Evaluate",
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON lines on stdout; the table then goes to stderr.")
    ] = False,
) -> None:
    """Prints a table with standard errors, and the judge's own accuracy on real images beside every score that it
    gives. A pipe or a file gets lines of metric, quantity, posterior, protocol, number of given attributes, value,
    standard error, unit, number of samples and judge, with tabs between. With --output only its path is printed, and
    with --json no file is kept without it.
    """
    from mmgen.evaluation import write_scores

    kept = None if as_json and stage.output is None else stage.kept("use --json to keep no file, ")
    scores = stage.measure()
    # Lines first: nothing that goes wrong with a table loses the work.
    with last_moments():
        if kept:
            write_scores(kept, scores)
        if as_json:
            for score in scores:
                result(json.dumps(score.to_json(), allow_nan=False))
        elif stage.output:
            result(kept)
        show_scores(scores, as_result=not as_json and stage.output is None)
        if kept and not stage.output:
            say(f"scores kept in {kept}")


def _plain(scores: Sequence["Score"]) -> list[list[str]]:
    """Scores as lines' cells; numbers in full."""
    from mmgen.results.score import judge_names

    lines = []
    for score, judge in zip(scores, judge_names(scores), strict=True):
        values: list[object] = [score.metric, score.quantity, score.source, score.protocol, score.given]
        values += [score.value, score.stderr, score.unit, score.n, judge]
        lines.append(["" if value is None else str(value) for value in values])
    return lines


def show_scores(scores: Sequence["Score"], as_result: bool) -> None:
    """One table per metric, on stdout where it is the result, else as talk; and what the scores warn of."""
    if as_result and not sys.stdout.isatty():
        result_lines((), _plain(scores))
    else:
        table = result_table if as_result else talk_table
        for name, unit in dict.fromkeys((score.metric, score.unit) for score in scores):
            rows = [score for score in scores if (score.metric, score.unit) == (name, unit)]
            table(f"{name}, nats per example" if unit == "nats" else name, *_table(name, rows))
    _say_warnings(scores)


def _say_warnings(scores: Sequence["Score"]) -> None:
    warned: dict[str, list[str]] = {}
    for score in scores:
        for text in score.extra.get("warnings", []):
            warned.setdefault(text, []).append(f"{score.quantity} ({score.protocol}) under {score.source}")
    for text, quantities in warned.items():
        say(f"{', '.join(quantities)}: {text}")


def _number(value: float | None, places: int = 2) -> str:
    return "" if value is None else f"{value:,.{places}f}"


def _cell(value: Any) -> str:
    """A further number of a score: small ones with two digits that say something."""
    if isinstance(value, float) and 0 < abs(value) < 0.1:
        return f"{value:.2g}"
    if isinstance(value, float):
        return _number(value)
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)


def _with_error(score: "Score") -> str:
    if score.unit == "parameters":
        return _number(score.value, 0)
    if score.stderr is None:
        return _number(score.value)
    # No error is printed as 0.00 that is not.
    places = 2 if score.stderr >= 0.05 or score.stderr == 0 else min(5, 1 - math.floor(math.log10(score.stderr)))
    return f"{_number(score.value, places)} ± {_number(score.stderr, places)}"


def _own_accuracy(score: "Score") -> float | None:
    """The judge's accuracy on real images, counted as the score counts: with told words where they are part of it."""
    accuracy = score.judge_accuracy or {}
    with_told = score.protocol in ("paper", "generated-text") and "words" in accuracy
    return accuracy.get("words" if with_told else "mean")


def _table(name: str, scores: Sequence["Score"]) -> tuple[list[str], list[list[str]]]:
    """Columns that all scores have, as far as they differ, and those that the metric declares."""
    from mmgen.metrics import get, names
    from mmgen.results.score import judge_names

    judged = any(score.judge_accuracy is not None for score in scores)
    columns: dict[str, list[str]] = {}
    if len({score.quantity for score in scores}) > 1 or not judged:
        columns["quantity"] = [score.quantity for score in scores]
    columns["posterior"] = [score.source for score in scores]
    if len({score.ids.get("judge") for score in scores}) > 1:
        columns["judge"] = judge_names(scores)
    columns["given"] = [_cell(score.given) for score in scores]
    columns["protocol"] = [score.protocol for score in scores]
    columns[f"{scores[0].unit} ± standard error"] = [_with_error(score) for score in scores]
    columns["images" if judged else "points"] = [f"{score.n:,}" for score in scores]
    for heading, key in (get(name).columns if name in names() else {}).items():
        columns[heading] = [_cell(score.extra.get(key)) for score in scores]
    columns["judge %"] = [_number(_own_accuracy(score), 1) for score in scores]
    told = {heading: cells for heading, cells in columns.items() if any(cells)}
    return list(told), [list(row) for row in zip(*told.values(), strict=True)]
