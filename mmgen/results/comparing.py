"""Scores of several runs as tables: runs that differ only in their seed are one row, incomparable scores are apart.

Numbers of other data, another classifier, split or protocol are never beside each other: see
:mod:`mmgen.results.conditions`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mmgen.results.compared import Column, ComparedTable, Row
from mmgen.results.comparison import Comparison
from mmgen.results.conditions import Conditions, differing, title_of
from mmgen.results.groups import contrast, group_of, is_best
from mmgen.results.runs import common_name
from mmgen.results.score import Score
from mmgen.settings.registry import unknown_name

__all__ = ["Entry", "compare_entries", "compare_scores"]


class Entry(NamedTuple):
    """A score and the run that it belongs to.

    Attributes:
        run: Identity of the run without its seed: a digest of its settings, or a file.
        name: Name of its file, for people.
        score: The score.
    """

    run: str
    name: str
    score: Score


_Who = tuple[str, str]  # a row: name of the run, and of the posterior


def compare_scores(files: Sequence[tuple[str, Sequence[Score]]], against: str = "") -> Comparison:
    """Group scores of several files, runs that differ only in their seed as one row.

    Args:
        files: Name of each file, without its ending, and its scores. Scores without a run stand under the name of the
            file.
        against: Name of the row that the others are compared with, posterior by posterior; or name and posterior of
            one, with a comma and a blank between.

    Raises:
        ValueError: There is no row of that name.
    """
    entries = [
        Entry(score.run["settings"], score.run["name"], score) if score.run else Entry(f"file {file}", file, score)
        for file, scores in files
        for score in scores
    ]
    compared = compare_entries(entries, against)
    without = sorted({file for file, scores in files if any(not score.run for score in scores)})
    note = f"{', '.join(without)}: these scores do not name their run; each file is a row of its own"
    return Comparison(compared.tables, (*compared.notes, *([note] if without else [])))


def compare_entries(entries: Sequence[Entry], against: str = "", names: Mapping[str, str] | None = None) -> Comparison:
    """Group scores of runs, as :func:`compare_scores`.

    Args:
        entries: The scores.
        against: Name of the row that the others are compared with.
        names: Names of datasets and classifiers by content id; others are called by the start of their id.

    Raises:
        ValueError: There is no row of that name.
    """
    titles = _names(entries)
    rows = list(dict.fromkeys((titles[entry.run], entry.score.source) for entry in entries))
    base = _Base(against, rows) if against else None
    conditions = list(dict.fromkeys(Conditions.of(entry.score) for entry in entries))
    tables = []
    for one in conditions:
        alike = [entry for entry in entries if Conditions.of(entry.score) == one]
        tables.append(_table(one, _about(one, conditions, names or {}), alike, titles, base))
    notes = [note for table in tables for note in table.notes] + _apart_notes(conditions)
    other = dict.fromkeys((one.value("dataset"), one.named["content"]) for one in conditions if "content" in one.named)
    notes += [f"the dataset {dataset} is {content}" for dataset, content in other]
    return Comparison(tuple(tables), tuple(dict.fromkeys(notes)))


def _names(entries: Sequence[Entry]) -> dict[str, str]:
    """Names of runs: what the names of their files have in common, no two the same."""
    files: dict[str, list[str]] = {}
    for entry in entries:
        files.setdefault(entry.run, []).append(entry.name)
    names = {run: common_name(several) for run, several in files.items()}
    ambiguous = {name for name in names.values() if list(names.values()).count(name) > 1}
    return {run: f"{name} ({run[:6]})" if name in ambiguous else name for run, name in names.items()}


class _Base:
    """The row that others are compared with: a run, one posterior of a run, or the same posterior of each run."""

    def __init__(self, text: str, rows: Sequence[_Who]) -> None:
        self.text = text
        names = list(dict.fromkeys(name for name, _ in rows))
        both = {f"{name}, {posterior}": (name, posterior) for name, posterior in rows}
        posteriors = list(dict.fromkeys(posterior for _, posterior in rows if _is_called(posterior, text)))
        if text in both:
            self.name, self.posterior = both[text]
        elif text in names:
            self.name, self.posterior = text, ""
        elif len(posteriors) == 1:
            self.name, self.posterior = "", posteriors[0]
        else:
            raise ValueError(unknown_name("row", text, [*names, *both]))

    def of(self, row: _Who, rows: Iterable[_Who]) -> _Who | None:
        """Return the row that a row is compared with: the same posterior of the base, or its only one."""
        own = [one for one in rows if self.name in ("", one[0]) and self.posterior in ("", one[1])]
        own = [one for one in own if self.name or one[0] == row[0]] or own  # of a posterior that of the same run
        same = [one for one in own if one[1] == row[1]]
        chosen = same[0] if same else own[0] if len(own) == 1 else None
        return None if chosen == row else chosen


def _is_called(posterior: str, text: str) -> bool:
    """Return whether a text names a posterior, with its weight or without."""
    return text in (posterior, posterior.partition("(w =")[0])


def _table(
    conditions: Conditions, about: str, entries: Sequence[Entry], names: Mapping[str, str], base: _Base | None
) -> ComparedTable:
    columns = sorted(dict.fromkeys(Column.of(entry.score) for entry in entries), key=lambda column: column.place)
    notes: dict[str, None] = {}
    runs: dict[_Who, list[dict[str, Score]]] = {}
    for run, _, score in entries:
        cells = runs.setdefault((names[run], score.source), [{} for _ in columns])
        cell, seed = cells[columns.index(Column.of(score))], score.run.get("seed", "")
        before = cell.get(seed)
        if before is not None and (before.value, before.stderr) != (score.value, score.stderr):
            of = f" with seed {seed}" if seed else ""
            notes[f"{names[run]}{of} was measured more than once, by other settings; the last of these counts"] = None
        cell[seed] = score
    groups = {row: [group_of(list(cell.values())) if cell else None for cell in cells] for row, cells in runs.items()}
    rows = []
    for row, numbers in groups.items():
        compared = base.of(row, groups) if base else None
        others = groups[compared] if compared else [None] * len(columns)
        rivals = [[other[place] for one, other in groups.items() if one != row] for place in range(len(columns))]
        last = next(cell.runs[-1] for cell in reversed(numbers) if cell is not None)
        rows.append(
            Row(
                *row,
                last.title,
                last.guidance or 0.0,
                last.balanced,
                tuple(numbers),
                tuple(is_best(cell, of) for cell, of in zip(numbers, rivals, strict=True)),
                tuple(contrast(a, b) if a and b else None for a, b in zip(numbers, others, strict=True)),
            )
        )
    better, against = entries[0].score.better, base.text if base else ""
    return ComparedTable(conditions, about, better, tuple(columns), tuple(rows), against, tuple(notes))


def _alike(conditions: Conditions, every: Sequence[Conditions]) -> list[Conditions]:
    return [one for one in every if one.metric == conditions.metric]


def _about(conditions: Conditions, every: Sequence[Conditions], files: Mapping[str, str]) -> str:
    named = conditions.named
    names = [name for name in ("protocol", "split", "content") if named.get(name)]
    names += ["part"] if named.get("part", "test") != "test" else []
    names += [name for name in differing(_alike(conditions, every)) if name not in names]
    return ", ".join(f"{title_of(name)} {conditions.value(name, files)}" for name in names)


def _apart_notes(conditions: Sequence[Conditions]) -> list[str]:
    """Explain why there are several tables of one metric."""
    notes = []
    for metric in dict.fromkeys(one.metric for one in conditions):
        alike = [one for one in conditions if one.metric == metric]
        parts = []
        for name in differing(alike):
            values = ", ".join(dict.fromkeys(one.value(name) for one in alike))
            parts.append(f"{title_of(name)} ({values})")
        if parts:
            notes.append(f"{metric} is in {len(alike)} tables, not to be compared: they differ in {'; '.join(parts)}")
    return notes
