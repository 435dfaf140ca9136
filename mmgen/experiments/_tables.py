"""Tables of experiments: their cells, and the paper's numbers beside the measured ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from glob import has_magic
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from mmgen.core.errors import format_unknown_name
from mmgen.results.groups import RunGroup, contrast, group_runs
from mmgen.results.published import published_table
from mmgen.results.score import Score
from mmgen.settings.config import Settings


class Selector(Settings):
    """Conditions that a score must meet to be shown in a row or column of a table."""

    scores: str | None = None
    """File of scores; with wildcards ("vae-*.jsonl") the mean over all matching files."""
    metric: str | None = None
    quantity: str | None = None
    protocol: str | None = None
    posterior: str | None = None
    text_weight: float | None = None
    """Power of p(y|z) that the exact posterior was fitted with."""
    guidance: float | None = None
    """Power of p(y|z) in a guided posterior."""
    guidance_method: str | None = None
    """Method of guidance, such as cfg; with guidance the default is that by candidates."""
    given: int | None = None
    """Number of conditioning attributes."""
    judge: str | None = None
    """Network of the judge, where there are several."""
    field: str | None = None
    """A detail of the score to show in place of its value ("log_weight_variance"); its standard error is the detail of
    the same name with "_stderr" behind it."""
    details: dict[str, str | float] = Field(default_factory=dict)
    """Values that details of the score must have, such as the share of pairs."""

    def matches(self, file: str, score: Any) -> bool:
        """Return True if a score in ``file`` meets all conditions."""
        keys = {"metric", "quantity", "protocol", "posterior", "text_weight", "given", "judge"}
        keys |= {"guidance", "guidance_method"}
        conditions = self.model_dump(include=keys, exclude_none=True)
        conditions |= {"guidance_method": self.guidance_method or ""} if self.guidance is not None else {}
        fits = all(getattr(score, key) == value for key, value in conditions.items())
        fits = fits and all(score.details.get(key) == value for key, value in self.details.items())
        return fits and (self.scores is None or fnmatchcase(file, self.scores))

    def merge(self, others: "Selector") -> "Selector":
        """Return the conditions of both; those of ``others`` replace the same ones here."""
        conditions: dict[str, Any] = {}
        for part in (self, others):
            conditions |= part.model_dump(include=set(Selector.model_fields), exclude_none=True)
        return Selector(**{**conditions, "details": {**self.details, **others.details}})


class Column(Selector):
    """A column of a published table, such as a posterior or a metric."""

    name: str
    """Heading of the column."""
    published: str = ""
    """Name in the published table, if it is another."""


class Row(Selector):
    """A row of a published table, such as a model."""

    name: str
    """First cell of the row."""
    published: str = ""
    """Name in the published table, if it is another."""
    measured: bool = True
    """Whether we measure anything; false for a row with published numbers only."""
    paper: tuple[float | Literal[""], ...] = ()
    """The published numbers, in the order of the columns, "" where the paper has none; by default those of the
    published table, if the table names one."""


class Table(Settings):
    """A published table, and the conditions by which its cells find our scores."""

    title: str = ""
    """Its quantity, where the experiment has several tables."""
    published: str = ""
    """The published table by its source, "WG Table 2, MNIST": its numbers stand where its rows and columns meet."""
    column: Annotated[tuple[Column, ...], Field(min_length=1)]
    row: Annotated[tuple[Row, ...], Field(min_length=1)]
    against: str = ""
    """Name of a column or of a row that all others are compared with."""
    decimals: Annotated[int, Field(ge=0)] = 2

    @field_validator("row")
    @classmethod
    def _add_published_numbers(cls, value: tuple[Row, ...], info: ValidationInfo) -> tuple[Row, ...]:
        """Fill in the rows' published numbers from the file that ``published`` names."""
        source, columns = info.data.get("published"), info.data.get("column", ())
        if not source:
            return value
        table = published_table(source)
        for part in (*value, *columns):
            if part.published and part.published not in table.names:
                raise ValueError(format_unknown_name(f"part of {source}", part.published, table.names))
        if any(row.paper for row in value):
            raise ValueError(f"paper got numbers and published got {source}, expected one of the two; leave one out")
        rows = []
        for row in value:
            found = [table.number(row.published or row.name, one.published or one.name) for one in columns]
            paper = tuple("" if number is None else number for number in found)
            rows.append(row.model_copy(update={"paper": paper if any(number != "" for number in paper) else ()}))
        if not any(row.paper for row in rows):
            raise ValueError(
                f"published got {source}, none of whose numbers belongs to a cell of this table; give cells its names"
            )
        return tuple(rows)

    @model_validator(mode="after")
    def _check_shape(self) -> "Table":
        for row in self.row:
            if len(row.paper) not in (0, len(self.column)):
                raise ValueError(
                    f"row '{row.name}' has {len(row.paper)} published numbers, expected {len(self.column)}, one for "
                    "each column"
                )
            if not row.measured and not row.paper:
                raise ValueError(f"row '{row.name}' is not measured and has no published numbers; give it some")
        if self.against and self.against not in [
            *(part.name for part in self.column),
            *(part.name for part in self.row),
        ]:
            raise ValueError(f"against got '{self.against}', expected the name of a column or of a row")
        return self


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
