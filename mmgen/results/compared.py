"""What a comparison consists of: columns, rows and tables of scores that may be compared."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from mmgen.results.conditions import Conditions
from mmgen.results.groups import Contrast, Group
from mmgen.results.score import Score

__all__ = ["Column", "ComparedTable", "Row"]


class Column(NamedTuple):
    """What scores of one column of a table have in common: metric, quantity, given attributes."""

    given: int | None
    quantity: str
    share: float | None

    @classmethod
    def of(cls, score: Score) -> "Column":
        """Return the column of a score."""
        share = score.details.get("share")
        known = float(share) if isinstance(share, int | float) else None
        return cls(score.given, score.quantity, known)

    @property
    def heading(self) -> str:
        """Heading of the column: "4 given"."""
        parts = [f"{self.given} given" if self.given is not None else self.quantity or "value"]
        parts += [f"{100 * self.share:g} % paired"] if self.share is not None else []
        return ", ".join(parts)

    @property
    def place(self) -> tuple[Any, ...]:
        """Sort key: many attributes given first, then quantities in the order of their metric."""
        return -self.given if self.given is not None else 1, self.share or 0.0


@dataclass(frozen=True)
class Row:
    """Runs that differ only in their seed, with one posterior and one weight of guidance.

    Attributes:
        name: What the runs have in common in their names.
        posterior: Name of the posterior, with its weight: "q_agg guided (w = 3, balanced)".
        title: The same and what it is.
        guidance: The weight; 0 for a posterior as it is.
        balanced: Whether attributes that are left out keep their shares.
        cells: By column; None where nothing was measured.
        best: Whether no other row beats it (:func:`mmgen.results.groups.is_best`); never for a single row.
        differences: From the row that the others are compared with; None for itself, and without one.
    """

    name: str
    posterior: str
    title: str
    guidance: float
    balanced: bool
    cells: tuple[Group | None, ...]
    best: tuple[bool, ...]
    differences: tuple[Contrast | None, ...]

    @property
    def n(self) -> int:
        """Largest number of runs behind one of its numbers."""
        return max((cell.n for cell in self.cells if cell is not None), default=0)


@dataclass(frozen=True)
class ComparedTable:
    """All scores of one metric that can be compared.

    Attributes:
        conditions: What all its numbers share.
        about: Protocol and split, and as much else as tells the table from others of its metric: "judge 1f2e...".
        better: "higher", "lower" or "neither".
        columns: In order.
        rows: In the order of the scores.
        against: Name of the row that the others are compared with; "" for none.
        notes: Sentences on numbers that were measured more than once.
    """

    conditions: Conditions
    about: str
    better: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    against: str = ""
    notes: tuple[str, ...] = ()
