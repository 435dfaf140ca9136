"""Columns, rows and tables of comparable scores."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from mmgen.results.conditions import Conditions
from mmgen.results.groups import Contrast, RunGroup
from mmgen.results.score import Score

__all__ = ["Column", "ComparedTable", "Row"]


class Column(NamedTuple):
    """Key of a column in a table of scores: the quantity, attributes in a description, and share of described examples.

    Attributes:
        given: Number of attributes in a description; None without descriptions.
        quantity: The measured quantity.
        share: Share of examples with descriptions in training; None if unknown.
    """

    given: int | None
    quantity: str
    share: float | None

    @classmethod
    def from_score(cls, score: Score) -> "Column":
        """Return the key of the column in which a score stands."""
        share = score.details.get("share")
        known = float(share) if isinstance(share, int | float) else None
        return cls(score.given, score.quantity, known)

    @property
    def heading(self) -> str:
        """Heading of the column in a table: "4 given" for scores of descriptions with four attributes."""
        parts = [f"{self.given} given" if self.given is not None else self.quantity or "value"]
        parts += [f"{100 * self.share:g} % paired"] if self.share is not None else []
        return ", ".join(parts)

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """Sort key of the columns of a table: more attributes first, then smaller shares."""
        return -self.given if self.given is not None else 1, self.share or 0.0


@dataclass(frozen=True)
class Row:
    """Row in a table of scores: runs that differ only in their seed, with one posterior and one weight of guidance.

    Attributes:
        name: Common part of the names of the runs.
        posterior: Name of the posterior, with its weight: "q_agg guided (w = 3)".
        title: Name and explanation of the posterior.
        guidance: Weight of guidance; 0 for none.
        guidance_method: Method of guidance, as in a score.
        cells: Measured number for each column; None without a score.
        best: For each column, whether no other row beats it (:func:`mmgen.results.groups.is_best`).
        differences: For each column, the difference from the reference row; None without one, or for itself.
    """

    name: str
    posterior: str
    title: str
    guidance: float
    guidance_method: str
    cells: tuple[RunGroup | None, ...]
    best: tuple[bool, ...]
    differences: tuple[Contrast | None, ...]

    @property
    def n(self) -> int:
        """Number of training runs in the cell of this row that has the most."""
        return max((cell.n for cell in self.cells if cell is not None), default=0)


@dataclass(frozen=True)
class ComparedTable:
    """Table of the scores of one metric that were measured under the same conditions.

    Attributes:
        conditions: Conditions that all its numbers share.
        about: Protocol, split and the conditions that distinguish it from other tables of its metric: "judge 1f2e...".
        better: The better direction: "higher", "lower" or "neither".
        columns: Keys of the columns.
        rows: Rows in the order of the scores.
        against: Name of the reference row; "" for none.
        notes: Sentences on numbers that were measured more than once.
    """

    conditions: Conditions
    about: str
    better: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    against: str = ""
    notes: tuple[str, ...] = ()
