"""The paper's numbers and ours side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from glob import has_magic
from math import hypot, sqrt
from statistics import fmean, stdev
from typing import Any

from mmgen.reproductions._tables import Selector, Table
from mmgen.score import Score

__all__ = ["Cell", "Compared", "Difference", "compare"]

Difference = tuple[float, float | None]
"""The difference of two cells, and its standard error."""


@dataclass(frozen=True)
class Cell:
    """One of our numbers.

    Attributes:
        value: The score's value, or another of its numbers.
        stderr: Its standard error, None if unknown.
        score: The score that it is of; of a mean over runs, one with the mean as its value.
    """

    value: float
    stderr: float | None
    score: Score

    @property
    def values(self) -> list[float] | None:
        """The number of each data point, where it is a mean over such."""
        values = self.score.extra.get("values")
        return values if isinstance(values, list) and self.value == self.score.value else None


@dataclass(frozen=True)
class Compared:
    """One table with our numbers, [row][column]; None where one is missing."""

    table: Table
    ours: tuple[tuple[Cell | None, ...], ...]

    def published(self, row: int, column: int) -> float | None:
        """The paper's number."""
        paper = self.table.row[row].paper
        value = paper[column] if paper else ""
        return None if value == "" else value

    @property
    def against_row(self) -> int | None:
        """The row that the others are compared with."""
        return _position(self.table.row, self.table.against)

    @property
    def against_column(self) -> int | None:
        """The column that the others are compared with."""
        return _position(self.table.column, self.table.against)

    def difference(self, place: tuple[int, int], other: tuple[int, int]) -> Difference | None:
        """Our number at ``place`` (row, column) less that at ``other``; None where one is missing.

        The error is over differences of the same data points where both were measured on these (likelihoods of single
        images differ by far more than models do), else as if the two were independent.
        """
        last, first = (self.ours[row][column] for row, column in (place, other))
        if first is None or last is None:
            return None
        paired = _paired(first, last)
        if paired is not None:
            return fmean(paired), stdev(paired) / sqrt(len(paired))
        known = first.stderr is not None and last.stderr is not None
        return last.value - first.value, hypot(first.stderr or 0.0, last.stderr or 0.0) if known else None

    def published_difference(self, place: tuple[int, int], other: tuple[int, int]) -> float | None:
        """The same of the paper's numbers."""
        last, first = self.published(*place), self.published(*other)
        return None if first is None or last is None else last - first


def _position(parts: Sequence[Any], name: str) -> int | None:
    return next((number for number, part in enumerate(parts) if name and part.name == name), None)


def _paired(first: Cell, last: Cell) -> list[float] | None:
    """Last less first, point by point; None where they are not of the same points."""
    one, other = first.score, last.score
    if any(one.extra.get(key) != other.extra.get(key) for key in ("split", "part", "seed")):
        return None
    if one.ids.get("dataset") != other.ids.get("dataset"):
        return None
    before, after = first.values, last.values
    if before is None or after is None or len(before) != len(after) or len(after) < 2:
        return None
    return [float(b) - float(a) for a, b in zip(before, after, strict=True)]


def compare(table: Table, scores: Mapping[str, Sequence[Score]]) -> Compared:
    """Our numbers in every cell of a table.

    Args:
        table: What belongs where.
        scores: By the name of the file that they are in.
    """

    def find(wanted: Selector) -> Cell | None:
        found = {file: [score for score in part if wanted.matches(file, score)] for file, part in scores.items()}
        cells = [_cell(part[-1], wanted.field) for part in found.values() if part]
        if wanted.scores is None or not has_magic(wanted.scores):
            return cells[-1] if cells else None
        return _mean([cell for cell in cells if cell is not None])

    return Compared(table, tuple(tuple(find(column.with_more(row)) for column in table.column) for row in table.row))


def _mean(runs: Sequence[Cell]) -> Cell | None:
    """The mean over several runs, its error from how much they differ; a single one keeps its own."""
    if len(runs) < 2:
        return runs[0] if runs else None
    values = [run.value for run in runs]
    value, error = fmean(values), stdev(values) / sqrt(len(values))
    return Cell(
        value,
        error,
        replace(
            runs[-1].score, value=value, stderr=error, n=sum(run.score.n for run in runs), extra={"runs": len(runs)}
        ),
    )


def _cell(score: Score, field: str | None) -> Cell | None:
    if field is None:
        return Cell(score.value, score.stderr, score)
    value, error = score.extra.get(field), score.extra.get(f"{field}_stderr")
    if not isinstance(value, int | float):
        return None
    return Cell(float(value), float(error) if isinstance(error, int | float) else None, score)
