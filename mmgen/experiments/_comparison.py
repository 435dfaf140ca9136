"""Published numbers and ours side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from glob import has_magic
from typing import Any

from mmgen.experiments._tables import Selector, Table
from mmgen.results.groups import RunGroup, contrast, group_runs
from mmgen.results.score import Score

__all__ = ["MeasuredCell", "TableComparison", "Difference", "compare_table"]

Difference = tuple[float, float | None]
"""The difference of two cells, and its standard error."""


@dataclass(frozen=True)
class MeasuredCell:
    """Our measured number in one cell of a published table, over one or several runs.

    Attributes:
        group: The scores of its runs.
        score: The score of a single run; for several runs one with their mean as its value and all their samples.
        over_seeds: Whether the runs differ in their seed alone; else the experiment has several files for the cell.
    """

    group: RunGroup
    score: Score
    over_seeds: bool = False

    @property
    def value(self) -> float:
        """Return the mean of the number over runs."""
        return self.group.mean

    @property
    def stderr(self) -> float | None:
        """Return the standard error of the mean, from the spread of several runs; None if unknown."""
        return self.group.stderr


@dataclass(frozen=True)
class TableComparison:
    """A published table beside our measured numbers of the same rows and columns."""

    table: Table
    ours: tuple[tuple[MeasuredCell | None, ...], ...]

    def published_number(self, row: int, column: int) -> float | None:
        """Return the published number of a cell; None if it has none, or ours is measured on other data."""
        paper = self.table.row[row].paper
        value = paper[column] if paper else ""
        return None if value == "" or self.data_difference else value

    @property
    def data_difference(self) -> str:
        """Return a text on how our data differ from the paper's; "" if they are the same."""
        cells = [cell for row in self.ours for cell in row if cell is not None]
        return next((text for cell in cells if (text := cell.score.conditions.get("content"))), "")

    @property
    def reference_row(self) -> int | None:
        """Return the position of the row that the other rows are compared with; None without one."""
        return _index_of(self.table.row, self.table.against)

    @property
    def reference_column(self) -> int | None:
        """Return the position of the column that the other columns are compared with; None without one."""
        return _index_of(self.table.column, self.table.against)

    def our_difference(self, place: tuple[int, int], reference: tuple[int, int]) -> Difference | None:
        """Return our number in the cell ``place`` (row, column) minus that in ``reference``; None if one is missing."""
        last, first = (self.ours[row][column] for row, column in (place, reference))
        if first is None or last is None:
            return None
        difference = contrast(last.group, first.group)
        return difference.value, difference.stderr

    def published_difference(self, place: tuple[int, int], reference: tuple[int, int]) -> float | None:
        """Return the published number in the cell ``place`` minus that in ``reference``; None if one is missing."""
        last, first = self.published_number(*place), self.published_number(*reference)
        return None if first is None or last is None else last - first


def _index_of(parts: Sequence[Any], name: str) -> int | None:
    """Return the position of the row or column called ``name``; None without one."""
    return next((number for number, part in enumerate(parts) if name and part.name == name), None)


def compare_table(
    table: Table, scores: Mapping[str, Sequence[Score]], runs: Mapping[str, Sequence[str]] | None = None
) -> TableComparison:
    """Fill the cells of a published table with our scores.

    Args:
        table: The table.
        scores: Scores by the name of their file.
        runs: Files of the runs of several seeds, by the name of the file in the experiment.
    """
    listed = runs or {file: [file] for file in scores}

    def find_cell(selector: Selector) -> MeasuredCell | None:
        matches: list[list[Score]] = []
        for file, parts in listed.items():
            of_runs = [[score for score in scores.get(part, ()) if selector.matches(file, score)] for part in parts]
            matches.append(
                [one for part in of_runs if part and (one := _select_number(part[-1], selector.field)) is not None]
            )
        matches = [part for part in matches if part]
        if not matches:
            return None
        if selector.scores is None or not has_magic(selector.scores):
            return _make_cell(matches[-1], over_seeds=True)
        return _make_cell([score for part in matches for score in part], over_seeds=False)

    ours = [[find_cell(column.merge(row)) if row.measured else None for column in table.column] for row in table.row]
    return TableComparison(table, tuple(map(tuple, ours)))


def _make_cell(runs: Sequence[Score], over_seeds: bool) -> MeasuredCell:
    """Return a cell with the mean over runs, and an error from their spread if there are several."""
    group = group_runs(runs)
    if group.n == 1:
        return MeasuredCell(group, runs[0])
    details = {name: runs[-1].details[name] for name in ("samples",) if name in runs[-1].details}
    samples = sum(run.n for run in runs)
    merged = replace(runs[-1], value=group.mean, stderr=group.stderr, n=samples, points=None, details=details)
    return MeasuredCell(group, merged, over_seeds)


def _select_number(score: Score, field: str | None) -> Score | None:
    """Return ``score`` with its detail ``field`` as value; None if it has no such number."""
    if field is None:
        return score
    value, error = score.details.get(field), score.details.get(f"{field}_stderr")
    if not isinstance(value, int | float):
        return None
    known = float(error) if isinstance(error, int | float) else None
    return replace(score, value=float(value), stderr=known, points=None)  # points belong to the other value
