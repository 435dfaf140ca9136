"""Scores of several runs as tables: what differs only in its seed is one row, and what cannot be compared is apart.

Numbers of other data, another judge, split or protocol are never beside each other: :mod:`mmgen.results.conditions`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mmgen.results.conditions import CALLED, Conditions
from mmgen.results.naming import LEARNED_PRIOR, posterior_name
from mmgen.results.runs import Contrast, Group, common_name, contrast, is_best, summed_up
from mmgen.results.score import Score
from mmgen.settings.registry import unknown_name

__all__ = ["Column", "Comparison", "Row", "Table", "compare_scores"]


_SHORT = 12  # letters of a content id


class Column(NamedTuple):
    """What scores must share to stand in one column of a table."""

    given: int | None
    quantity: str
    share: float | None

    @classmethod
    def of(cls, score: Score) -> "Column":
        """That of a score."""
        share = score.extra.get("share")
        known = float(share) if isinstance(share, int | float) else None
        return cls(score.given, score.quantity, known)

    @property
    def heading(self) -> str:
        """What it says above the column."""
        said = [f"{self.given} given" if self.given is not None else self.quantity or "value"]
        said += [f"{100 * self.share:g} % paired"] if self.share is not None else []
        return ", ".join(said)

    @property
    def place(self) -> tuple[Any, ...]:
        """Its place among others: many attributes given first, then quantities by name."""
        return -self.given if self.given is not None else 1, self.quantity, self.share or 0.0


@dataclass(frozen=True)
class Row:
    """Runs that differ only in their seed, with one posterior and one weight of guidance.

    Attributes:
        name: What the runs have in common in their names.
        posterior: Where z came from, with the weight: "q_agg guided (w = 3, balanced)".
        guidance: The weight; 0 of a posterior as it is.
        balanced: Whether what was left out kept its shares.
        cells: By column; None where nothing was measured.
        best: Whether no other row beats it (:func:`mmgen.results.runs.is_best`); never of a single row.
        differences: From the row that the others are compared with; None for itself, and without one.
    """

    name: str
    posterior: str
    guidance: float
    balanced: bool
    cells: tuple[Group | None, ...]
    best: tuple[bool, ...]
    differences: tuple[Contrast | None, ...]

    @property
    def n(self) -> int:
        """Most runs behind one of its numbers."""
        return max((cell.n for cell in self.cells if cell is not None), default=0)


@dataclass(frozen=True)
class Table:
    """Everything of one metric that can be compared.

    Attributes:
        conditions: What all its numbers share.
        about: Protocol and split, and as much else as tells the table from others of its metric: "judge 1f2e...".
        better: "higher", "lower" or "neither".
        columns: In order.
        rows: In the order in which they were given.
        against: Name of the row that the others are compared with; "" for none.
    """

    conditions: Conditions
    about: str
    better: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    against: str = ""


@dataclass(frozen=True)
class Comparison:
    """Scores of several runs, grouped.

    Attributes:
        tables: One for all that may be compared.
        notes: Sentences on what was kept apart, and what is not as one might think.
    """

    tables: tuple[Table, ...]
    notes: tuple[str, ...] = field(default=())


_Who = tuple[str, str]  # settings (or the file, of scores that do not tell), and posterior


def compare_scores(files: Sequence[tuple[str, Sequence[Score]]], against: str = "") -> Comparison:
    """Scores of several files as tables, runs that differ only in their seed as one row.

    Args:
        files: Each file's name, without its ending, and what is in it. Scores that do not tell of their run stand under
            the name of the file.
        against: Name of the row that the others are compared with, posterior by posterior; or name and posterior of
            one, with a comma and a blank between.

    Raises:
        ValueError: There is no row of that name.
    """
    named = [(_who(file, score), score) for file, scores in files for score in scores]
    names = _names(named)
    rows = list(dict.fromkeys((names[who[0]], who[1]) for who, _ in named))
    base = _Base(against, rows) if against else None
    conditions = list(dict.fromkeys(Conditions.of(score) for _, score in named))
    notes: list[str] = []
    tables = []
    for one in conditions:
        found = [(who, score) for who, score in named if Conditions.of(score) == one]
        tables.append(_table(one, conditions, found, names, base, notes))
    notes += _apart_notes(conditions)
    other = dict.fromkeys((one.dataset[:_SHORT], one.named["content"]) for one in conditions if "content" in one.named)
    notes += [f"the dataset {dataset} is {content}" for dataset, content in other]
    if silent := sorted({file for file, scores in files if any(not score.run for score in scores)}):
        notes.append(
            f"{', '.join(silent)}: these scores do not tell of which run they are, as those of earlier versions; each "
            "file is a row of its own"
        )
    return Comparison(tuple(tables), tuple(dict.fromkeys(notes)))


def _who(file: str, score: Score) -> _Who:
    """Which row a score belongs to: the run without its seed, and the posterior with its guidance."""
    base = score.base or score.posterior
    nothing = base == LEARNED_PRIOR or score.fitted_given == "nothing"
    posterior = posterior_name(
        "aggregate" if base == LEARNED_PRIOR else base,
        score.text_weight,
        score.guidance or 0.0,
        score.balanced,
        given="nothing" if nothing else None,
    )
    return score.run["settings"] if score.run else f"file {file}", posterior


def _names(named: Sequence[tuple[_Who, Score]]) -> dict[str, str]:
    """What the runs of some settings are called: what their names have in common, and no two the same."""
    called: dict[str, list[str]] = {}
    for (run, _), score in named:
        called.setdefault(run, []).append(score.run["name"] if score.run else run.removeprefix("file "))
    found = {run: common_name(names) for run, names in called.items()}
    several = {name for name in found.values() if list(found.values()).count(name) > 1}
    return {run: f"{name} ({run[:6]})" if name in several else name for run, name in found.items()}


class _Base:
    """The row that others are compared with."""

    def __init__(self, wanted: str, rows: Sequence[_Who]) -> None:
        self.name, self.posterior = next(
            ((name, posterior) for name, posterior in rows if wanted == f"{name}, {posterior}"), (wanted, "")
        )
        alike = list(dict.fromkeys(posterior for _, posterior in rows if _is_called(posterior, wanted)))
        if self.name not in [name for name, _ in rows] and len(alike) == 1:  # a posterior, as tables print it
            self.name, self.posterior = "", alike[0]
        elif self.name not in [name for name, _ in rows]:
            several = [f"{name}, {posterior}" for name, posterior in rows]
            raise ValueError(unknown_name("row", wanted, list(dict.fromkeys([*(name for name, _ in rows), *several]))))
        self.text = wanted

    def of(self, row: _Who, rows: Iterable[_Who]) -> _Who | None:
        """What a row is compared with: the same posterior of the base, or its only one; None for itself."""
        own = [one for one in rows if self.name in ("", one[0]) and self.posterior in ("", one[1])]
        own = [one for one in own if self.name or one[0] == row[0]] or own  # of a posterior that of the same run
        same = [one for one in own if one[1] == row[1]]
        chosen = same[0] if same else own[0] if len(own) == 1 else None
        return None if chosen == row else chosen


def _is_called(posterior: str, wanted: str) -> bool:
    """Whether a posterior is meant: by its name, or by what stands before its weight."""
    return wanted in (posterior, posterior.partition("(w =")[0])


def _table(
    conditions: Conditions,
    every: Sequence[Conditions],
    found: Sequence[tuple[_Who, Score]],
    names: Mapping[str, str],
    base: _Base | None,
    notes: list[str],
) -> Table:
    columns = sorted({Column.of(score) for _, score in found}, key=lambda column: column.place)
    runs: dict[_Who, list[dict[str, Score]]] = {}
    guided: dict[_Who, tuple[float, bool]] = {}
    for (run, posterior), score in found:
        guided[names[run], posterior] = score.guidance or 0.0, score.balanced
        cells = runs.setdefault((names[run], posterior), [{} for _ in columns])
        cell, seed = cells[columns.index(Column.of(score))], score.run.get("seed", "")
        before = cell.get(seed)
        if before is not None and (before.value, before.stderr) != (score.value, score.stderr):
            of = f" with seed {seed}" if seed else ""
            notes.append(f"{names[run]}{of} was measured more than once, by other settings; the last of these counts")
        cell[seed] = score
    groups = {row: [summed_up(list(cell.values())) if cell else None for cell in cells] for row, cells in runs.items()}
    rows = []
    for row, numbers in groups.items():
        compared = base.of(row, groups) if base else None
        others = groups[compared] if compared else [None] * len(columns)
        rivals = [[other[place] for one, other in groups.items() if one != row] for place in range(len(columns))]
        rows.append(
            Row(
                *row,
                *guided[row],
                tuple(numbers),
                tuple(is_best(cell, of) for cell, of in zip(numbers, rivals, strict=True)),
                tuple(contrast(a, b) if a and b else None for a, b in zip(numbers, others, strict=True)),
            )
        )
    about = _about(conditions, every)
    return Table(conditions, about, found[0][1].better, tuple(columns), tuple(rows), base.text if base else "")


def _alike(conditions: Conditions, every: Sequence[Conditions]) -> list[Conditions]:
    return [one for one in every if one.metric == conditions.metric]


def _differing(conditions: Sequence[Conditions]) -> list[str]:
    """What some conditions differ in."""
    every = [one.named for one in conditions]
    names = dict.fromkeys(name for named in every for name in named)
    return [name for name in names if len({named.get(name, "") for named in every}) > 1]


def _value(conditions: Conditions, name: str) -> str:
    value = conditions.named.get(name, "")
    return (value[:_SHORT] if name in ("dataset", "judge") else value) or "not recorded"


def _about(conditions: Conditions, every: Sequence[Conditions]) -> str:
    differing = _differing(_alike(conditions, every))
    said = [name for name in ("protocol", "split") if getattr(conditions, name)]
    said += ["content"] if conditions.named.get("content") else []
    said += ["part"] if conditions.part not in ("", "test") else []
    said += [name for name in differing if name not in said]
    return ", ".join(f"{CALLED.get(name, name)} {_value(conditions, name)}" for name in said)


def _apart_notes(conditions: Sequence[Conditions]) -> list[str]:
    """Why there are several tables of one metric."""
    notes = []
    for metric in dict.fromkeys(one.metric for one in conditions):
        alike = [one for one in conditions if one.metric == metric]
        said = []
        for name in _differing(alike):
            values = ", ".join(dict.fromkeys(_value(one, name) for one in alike))
            said.append(f"{CALLED.get(name, name)} ({values})")
        if said:
            notes.append(f"{metric} is in {len(alike)} tables, not to be compared: they differ in {'; '.join(said)}")
    return notes
