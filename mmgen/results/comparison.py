"""Comparison of scores: pairs of equal conditions, and tables of them."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mmgen.results.conditions import Conditions
from mmgen.results.frame import pivot, table_of
from mmgen.results.groups import LEVEL, Contrast, RunGroup
from mmgen.results.number import Number
from mmgen.results.score import Score
from mmgen.results.table import Cell, Table


class Column(NamedTuple):
    """Key of a column in a table of scores: the quantity, attributes in a description, and share of described examples.

    Attributes:
        given: Number of attributes in a description; None without descriptions.
        quantity: The measured quantity.
        share: Share of examples with descriptions in training; None if unknown.
        metric: The metric, which names a quantity without a name.
    """

    given: int | None
    quantity: str
    share: float | None
    metric: str = ""

    @classmethod
    def from_score(cls, score: Score) -> "Column":
        """Return the key of the column in which a score stands."""
        share = score.details.get("share")
        known = float(share) if isinstance(share, int | float) else None
        return cls(score.given, score.quantity, known, score.metric)

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """Sort key of the columns of a table: more attributes first, then smaller shares."""
        return -self.given if self.given is not None else 1, self.share or 0.0


def head_columns(columns: Sequence[Column]) -> dict[Column, str]:
    """Return the headings of a table's columns: "4 given", with the quantity where the table has several.

    Example:
        >>> list(head_columns([Column(4, "agreement", None), Column(4, "sure", None)]).values())
        ['agreement, 4 given', 'sure, 4 given']
    """
    several = len({column.quantity for column in columns}) > 1
    headings = {}
    for column in columns:
        parts = [column.quantity or column.metric or "value"] if several or column.given is None else []
        parts += [f"{column.given} given"] if column.given is not None else []
        parts += [f"{100 * column.share:g} % paired"] if column.share is not None else []
        headings[column] = ", ".join(parts)
    return headings


class Record(NamedTuple):
    """One number of a comparison: of runs that differ only in their seed, drawn by one method.

    Attributes:
        name: Common part of the names of the runs.
        method: The posterior with its weights, and whether words were completed: "q_agg guided (w = 3)".
        column: The quantity, and what was given.
        group: The measured number, with the scores of the runs behind it.
        best: Whether no other row of the column beats it (:func:`mmgen.results.groups.is_best`).
        difference: The difference from the reference row; None without one, or for itself.
    """

    name: str
    method: str
    column: Column
    group: RunGroup
    best: bool
    difference: Contrast | None

    @property
    def row(self) -> tuple[str, str]:
        """Key of its row."""
        return self.name, self.method


@dataclass(frozen=True)
class ComparedTable:
    """Table of the scores of one metric that were measured under the same conditions.

    Attributes:
        conditions: Conditions that all its numbers share.
        about: Protocol, split and the conditions that distinguish it from other tables of its metric: "judge 1f2e...".
        better: The better direction: "higher", "lower" or "neither".
        records: Its numbers, row by row in the order of the scores, columns in theirs.
        against: Name of the reference row; "" for none.
        notes: Sentences on numbers that were measured more than once.
    """

    conditions: Conditions
    about: str
    better: str
    records: tuple[Record, ...]
    against: str = ""
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[Column, str]:
        """The columns in order, with their headings."""
        found = dict.fromkeys(record.column for record in self.records)
        return head_columns(sorted(found, key=lambda column: column.sort_key))


_OVER = {
    "seeds": "a t interval over the seeds, which both have",
    "points": "a t interval over the same points of one run each",
    "both": "Welch's interval of two groups of other seeds",
    "examples": "a normal interval by the standard errors of one run each, as if they were independent",
}


@dataclass(frozen=True)
class Comparison:
    """Tables that compare scores of several training runs, with printers for several formats.

    Attributes:
        tables: One table for each group of comparable scores.
        notes: Sentences on scores in separate tables and on scores measured twice.
    """

    tables: tuple[ComparedTable, ...]
    notes: tuple[str, ...] = ()

    def printable_tables(self) -> list[Table]:
        """Return the tables to print; a table with a reference row is followed by a table of differences from it."""
        labels, tables = Counter[str](), []
        for one in self.tables:
            for kind, table in (("", _score_table(one)), ("difference", _difference_table(one))):
                label = _latex_label(one, kind)
                labels[label] += 1
                label += f"-{labels[label]}" if labels[label] > 1 else ""
                tables += [replace(table, label=label)] if table.rows else []
        return tables

    def legend(self, mark: str = "*", errors: bool = True) -> str:
        """Explain in sentences what ±, the mark of the best numbers and the intervals in the tables mean."""
        parts = [_explain_errors(self.tables)] if errors else []
        records = [record for table in self.tables for record in table.records]
        if any(record.best for record in records):
            parts.append(f"{mark}: no other row beats it, the {LEVEL:.0%} interval of the difference holds 0")
        differences = [record.difference for record in records if record.difference is not None]
        if sources := {one.over for one in differences if one.low is not None}:
            kinds = " or ".join(_OVER[name] for name in _OVER if name in sources)
            parts.append(f"[low, high] is a {LEVEL:.0%} interval of the difference: {kinds}")
        if any(one.stderr == 0 for one in differences):
            parts.append("no spread: all differences are the same, which gives no interval")
        text = "; ".join(filter(None, parts)).replace("%", " %")
        return f"{text}." if text else ""

    def markdown(self) -> str:
        """Format all tables in Markdown, the last one with a legend."""
        return "\n\n".join(table.markdown() for table in self._tables_with_legend())

    def latex(self) -> str:
        r"""Format all tables in LaTeX (``\usepackage{booktabs}``), the last one with a legend as a comment."""
        tables = []
        for one in self.tables:
            main, *differences = Comparison((one,)).printable_tables()
            errors = _explain_errors([one])
            tables += [replace(main, title=f"{main.title}. {errors}" if errors else main.title), *differences]
        labelled = [
            replace(table, label=named.label) for table, named in zip(tables, self.printable_tables(), strict=True)
        ]
        labelled[-1] = replace(labelled[-1], note=self.legend("bold", errors=False))
        return "\n\n".join([r"% \usepackage{booktabs}", *(table.latex() for table in labelled)])

    def html(self) -> str:
        """Format all tables in HTML, the last one with a legend."""
        return "".join(table.html() for table in self._tables_with_legend())

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self._tables_with_legend("*")) or "no scores"

    def _repr_html_(self) -> str:
        return self.html()

    def _tables_with_legend(self, mark: str = "bold") -> list[Table]:
        tables = self.printable_tables()
        return [*tables[:-1], *(replace(last, note=self.legend(mark)) for last in tables[-1:])]

    def number_table(self) -> Table:
        """Return one table for CSV and tab-separated lines: a row for each number, unrounded, with its conditions."""
        records = list(_records(self.tables))
        rows = [["" if value is None else str(value) for value in record.values()] for record in records]
        return Table("", list(records[0]) if records else [], rows)

    def json_lines(self) -> str:
        """Format each number of the tables, with its conditions, as a JSON object on a line."""
        return "\n".join(json.dumps(record, allow_nan=False) for record in _records(self.tables))


def _score_table(table: ComparedTable) -> Table:
    return _lay_out(
        table,
        _title(table),
        [(record, record.group.n, replace(record.group.number, best=record.best)) for record in table.records],
    )


def _difference_table(table: ComparedTable) -> Table:
    compared = [(record, record.difference) for record in table.records if record.difference is not None]
    title = f"{_title(table)}: difference from {table.against}"
    return _lay_out(table, title, [(record, one.n, one.number) for record, one in compared])


def _lay_out(table: ComparedTable, title: str, numbers: Sequence[tuple[Record, int, Number]]) -> Table:
    """Arrange numbers by row and column, with the number of seeds of each row, and of a number that has others."""
    most: dict[tuple[str, str], int] = {}
    for record, n, _ in numbers:
        most[record.row] = max(n, most.get(record.row, 1))
    cells: list[tuple[tuple[str, str], str, Cell]] = []
    for record, n, number in numbers:
        note = number.note if n == most[record.row] else f"{number.note}, n = {n}"
        cells.append((record.row, table.columns[record.column], replace(number, note=note)))
    cells += [(row, "seeds", str(n)) for row, n in most.items()]
    columns, rows = pivot(cells, table.columns.values())
    named = [({"": name, "drawn from": method}, found) for (name, method), found in rows.items()]
    return table_of(title, [{**who, **dict(zip(columns, found, strict=True))} for who, found in named])


def _title(table: ComparedTable) -> str:
    conditions = table.conditions
    unit = f", {conditions.unit}" + (" per example" if conditions.unit == "nats" else "")
    lower = ", lower is better" if table.better == "lower" else ""
    return f"{conditions.metric}{unit if conditions.unit else ''}{lower}" + (f" ({table.about})" if table.about else "")


def _latex_label(table: ComparedTable, kind: str) -> str:
    """Return the LaTeX label of a table, with only letters, digits and dashes."""
    words = [table.conditions.metric, table.conditions.protocol, table.conditions.by_name.get("split", ""), kind]
    return "tab:" + "-".join(filter(None, (re.sub("[^a-z0-9]+", "-", word.lower()).strip("-") for word in words)))


def _explain_errors(tables: Sequence[ComparedTable]) -> str:
    """Explain for a legend what ± means in these tables; return "" if no number has an error."""
    groups = [record.group for table in tables for record in table.records]
    several = {group.n > 1 for group in groups if group.number.error_text}
    if several == {True, False}:
        return "± is the standard deviation over seeds, of a single run the standard error over its examples"
    return (
        {True: "± is the standard deviation over seeds", False: "± is the standard error over examples"}[several.pop()]
        if several
        else ""
    )


def _records(tables: Sequence[ComparedTable]) -> Iterator[dict[str, Any]]:
    """Yield each number of the tables as a dictionary with its row, column, conditions and difference."""
    for table in tables:
        conditions = table.conditions
        for name, method, column, group, best, one in table.records:
            last = group.runs[-1]
            yield {
                "metric": conditions.metric,
                "quantity": column.quantity,
                "protocol": conditions.protocol,
                "split": conditions.by_name.get("split", ""),
                "part": conditions.by_name.get("part", ""),
                "given": column.given,
                "guidance": last.guidance or None,
                "guidance_method": last.guidance_method or None,
                "share": column.share,
                "dataset": conditions.dataset,
                "judge": conditions.judge,
                "name": name,
                "posterior": method,
                "n": group.n,
                "mean": _finite_or_none(group.mean),
                "sd": _finite_or_none(group.sd),
                "stderr": _finite_or_none(group.stderr),
                "unit": conditions.unit,
                "better": table.better,
                "best": best,
                "seeds": ",".join(group.by_seed),
                "against": table.against or None,
                "difference": _finite_or_none(one.value) if one else None,
                "difference_stderr": _finite_or_none(one.stderr) if one else None,
                "difference_low": _finite_or_none(one.low) if one else None,
                "difference_high": _finite_or_none(one.high) if one else None,
                "difference_n": one.n if one else None,
                "difference_over": one.over if one else None,
            }


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
