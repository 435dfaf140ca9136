"""Reproduced tables for people: on the terminal, in a page of Markdown, in a report."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mmgen.artifacts import read_header
from mmgen.core.parsing import printable
from mmgen.experiments._plan import comment_lines
from mmgen.experiments._stages import Plan, Scale
from mmgen.experiments._states import is_artifact_name
from mmgen.experiments._tables import Difference, MeasuredCell as OurCell, TableComparison
from mmgen.results.frame import table_of
from mmgen.results.number import Number
from mmgen.results.published import published_table
from mmgen.results.table import Cell, Table


def comparison_tables(plan: Plan, comparisons: Sequence[TableComparison]) -> list[Table]:
    """Return each compared table, followed by a table of differences if its rows have a reference row."""
    tables = []
    for one in comparisons:
        title = _table_title(one, plan)
        tables.append(_main_table(one, title))
        if one.reference_row is not None:
            tables.append(_difference_table(one, one.reference_row, f"{title}: differences from {one.table.against}"))
    return tables


def _table_title(comparison: TableComparison, plan: Plan) -> str:
    """Return the title of a table, with remarks on the published numbers."""
    title = comparison.table.title or plan.title
    remarks = published_table(comparison.table.published).remarks if comparison.table.published else ""
    notes = "; ".join(
        filter(
            None, [comparison.data_difference and f"ours are of data that are {comparison.data_difference}", remarks]
        )
    )
    return f"{title} ({notes})" if notes else title


def _main_table(comparison: TableComparison, title: str) -> Table:
    """Return the table with published and measured numbers side by side."""
    base, rows = comparison.reference_column, []
    compared = [] if base is None else [place for place in range(len(comparison.table.column)) if place != base]
    for number, row in enumerate(comparison.table.row):
        cells = {"": row.name, **_cells(comparison, "paper", number, _published_cell)}
        cells |= _cells(comparison, "ours", number, _our_cell)
        for place in compared:
            pair, gain = ((number, place), (number, base or 0)), f"gain of {comparison.table.column[place].name}"
            cells[f"{gain}: paper"] = _published_gain(comparison, *pair)
            cells[f"{gain}: ours"] = _difference_cell(comparison.our_difference(*pair))
        measured = [cell for cell in comparison.ours[number] if cell is not None]
        cells |= {"seeds": _seeds_note(measured), "n": _counts_note(measured), "draws of z": _draws_note(measured)}
        rows.append(cells)
    return table_of(title, rows)


def _difference_table(comparison: TableComparison, base: int, title: str) -> Table:
    """Return the table of differences of each row to the row ``base``."""

    def published(one: TableComparison, row: int, place: int) -> Cell:
        return _published_gain(one, (row, place), (base, place))

    def ours(one: TableComparison, row: int, place: int) -> Cell:
        return _difference_cell(one.our_difference((row, place), (base, place)))

    rows = [
        {"": row.name, **_cells(comparison, "paper", number, published), **_cells(comparison, "ours", number, ours)}
        for number, row in enumerate(comparison.table.row)
        if number != base
    ]
    return table_of(title, rows)


def _cells(
    comparison: TableComparison, whose: str, row: int, cell: Callable[[TableComparison, int, int], Cell]
) -> dict[str, Cell]:
    """Return the cells of a row by heading: "paper: NAME" or "ours: NAME" for each column."""
    return {f"{whose}: {one.name}": cell(comparison, row, place) for place, one in enumerate(comparison.table.column)}


def _published_cell(comparison: TableComparison, row: int, column: int) -> Cell:
    value = comparison.published_number(row, column)
    return "" if value is None else Number(value, places=comparison.table.decimals)


def _our_cell(comparison: TableComparison, row: int, column: int) -> Cell:
    cell = comparison.ours[row][column]
    if cell is None:
        # Where the paper has numbers of this row but not here, there may be nothing to measure.
        nothing = bool(comparison.table.row[row].paper) and comparison.published_number(row, column) is None
        return "" if nothing else "not measured"
    error = cell.group.sd if cell.over_seeds else cell.stderr
    return Number(cell.value, error, whole=cell.score.unit == "parameters")


def _published_gain(comparison: TableComparison, place: tuple[int, int], reference: tuple[int, int]) -> Cell:
    value = comparison.published_difference(place, reference)
    return "" if value is None else Number(value, places=comparison.table.decimals, signed=True)


def _difference_cell(difference: Difference | None) -> Cell:
    if difference is None:
        return ""
    value, error = difference
    return Number(value, error or None, signed=True, note=" (no spread)" if error == 0 else "")


def _seeds_note(cells: Sequence[OurCell]) -> str:
    """Return a note on how many seeds the means are over; "" for single runs."""
    if not any(cell.over_seeds for cell in cells):
        return ""
    return " / ".join(dict.fromkeys(str(cell.group.n) for cell in cells))


def _counts_note(cells: Sequence[OurCell]) -> str:
    """Return a note on how many examples the numbers were measured on."""
    return " / ".join(dict.fromkeys(f"{cell.score.n:,}" for cell in cells if cell.score.n > 1))


def _draws_note(cells: Sequence[OurCell]) -> str:
    """Return a note on how many random draws the numbers use."""
    draws = [cell.score.details.get("samples") for cell in cells]
    return " / ".join(dict.fromkeys(f"{number:,}" for number in draws if isinstance(number, int)))


def classifier_accuracy_sentence(comparisons: Sequence[TableComparison]) -> str:
    """Return a sentence on the held-out accuracy of the attribute classifier; "" without one."""
    cells = [cell for one in comparisons for row in one.ours for cell in row if cell is not None]
    accuracy = next((cell.score.judge_accuracy for cell in cells if cell.score.judge_accuracy), None)
    if not accuracy:
        return ""
    words = f"{accuracy['words']:.2f} % of all words, " if "words" in accuracy else ""
    each = ", ".join(f"{name} {value:.1f}" for name, value in accuracy.items() if name not in ("mean", "words"))
    right = f"{words}{accuracy['mean']:.2f} % of those it says"
    return f"The judge itself, on real images that it has not seen: {right} ({each})."


def page_markdown(
    plan: Plan, scale: Scale, comparisons: Sequence[TableComparison], folder: Path, used: Sequence[str]
) -> str:
    """Return a Markdown page about a reproduced table: numbers, classifier, commands and files.

    Args:
        plan: The experiment.
        scale: Its stages.
        comparisons: The tables.
        folder: Folder of the files.
        used: Names of the files that the numbers come from.
    """
    lines = [f"# {plan.title}", "", f"Paper: {plan.source}. Measured there on {plan.dataset}.", ""]
    lines += [scale.about.strip(), ""]
    for table in comparison_tables(plan, comparisons):
        lines += [] if table.title == plan.title else [f"## {table.title}", ""]
        lines += [replace(table, title="").markdown(), ""]
    lines += [
        "± is one standard error: over descriptions for correctness, over data points for likelihoods. "
        "Differences of likelihoods are taken point by point.",
        *_seeds_section(comparisons),
        "",
    ]
    judged = classifier_accuracy_sentence(comparisons)
    lines += [judged, ""] if judged else []
    lines += ["## How it was made", "", "```sh"]
    for stage in scale.stage:
        lines += [*comment_lines(stage.why), stage.command_line]
    files = [
        [stage.makes, _code_span(header.content_id[:16]), _code_span(header.command or stage.command_line)]
        for stage in scale.stage
        if stage.makes in used and is_artifact_name(folder / stage.makes)
        for header in [read_header(folder / stage.makes)]
    ]
    lines += ["```", "", Table("", ["file", "content id", "made by"], files).markdown()]
    return "\n".join(lines) + "\n"


def _seeds_section(comparisons: Sequence[TableComparison]) -> list[str]:
    """Return the section of the page with the numbers of each seed."""
    if not any(cell is not None and cell.over_seeds for one in comparisons for row in one.ours for cell in row):
        return []
    return [
        "Of several seeds ± is the standard deviation over their runs; differences are taken seed by seed, with their "
        "standard error."
    ]


def _code_span(text: str) -> str:
    """Format foreign text as Markdown code on one line."""
    code = printable(text, 2000)
    fence = "`" * (1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{fence} {code} {fence}" if "`" in code else f"`{code}`"
