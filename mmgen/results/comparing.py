"""Comparison of scores of several training runs in tables: runs that differ only in their seed share a row.

Scores of different data, classifiers, splits or protocols never share a table: see :mod:`mmgen.results.conditions`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mmgen.core.errors import format_unknown_name
from mmgen.results.comparison import Column, ComparedTable, Comparison, Record
from mmgen.results.conditions import Conditions, common_name, condition_title, differing_names
from mmgen.results.groups import contrast, group_runs, is_best, rank_groups
from mmgen.results.score import Score


class Entry(NamedTuple):
    """A score with the training run that it measures.

    Attributes:
        run: Identity of the run without its seed: a digest of its settings, or a file.
        name: Name of the run's file, for people.
        score: The score.
    """

    run: str
    name: str
    score: Score


_RowKey = tuple[str, str]  # name of the run, name of the posterior


def compare_scores(files: Sequence[tuple[str, Sequence[Score]]], against: str = "") -> Comparison:
    """Arrange the scores of several files in tables; training runs that differ only in their seed form one row.

    Args:
        files: Name of each file, without its ending, and its scores. Scores without a run form a row named by the file.
        against: Name of the row that the others are compared with, posterior by posterior; or its name and posterior,
            separated by a comma and a blank.

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
    note = f"{', '.join(without)}: these scores do not name their run, so each file has its own row"
    return Comparison(compared.tables, (*compared.notes, *([note] if without else [])))


def compare_entries(entries: Sequence[Entry], against: str = "", names: Mapping[str, str] | None = None) -> Comparison:
    """Arrange scores with their training runs in tables; runs that differ only in their seed form one row.

    Args:
        entries: The scores with their runs.
        against: Name of the row that the others are compared with.
        names: Names of datasets and classifiers by content id; others are named by the start of their id.

    Raises:
        ValueError: There is no row of that name.
    """
    titles = _name_runs(entries)
    rows = list(dict.fromkeys((titles[entry.run], entry.score.source) for entry in entries))
    base = _ReferenceRow(against, rows) if against else None
    conditions = list(dict.fromkeys(Conditions.from_score(entry.score) for entry in entries))
    tables = []
    for one in conditions:
        alike = [entry for entry in entries if Conditions.from_score(entry.score) == one]
        tables.append(_build_table(one, _describe_conditions(one, conditions, names or {}), alike, titles, base))
    notes = [note for table in tables for note in table.notes] + _explain_separate_tables(conditions)
    other = dict.fromkeys(
        (one.format_value("dataset"), one.by_name["content"]) for one in conditions if "content" in one.by_name
    )
    notes += [f"the dataset {dataset} is {content}" for dataset, content in other]
    return Comparison(tuple(tables), tuple(dict.fromkeys(notes)))


def _name_runs(entries: Sequence[Entry]) -> dict[str, str]:
    """Name each training run by the common part of its files' names, and make equal names distinct."""
    files: dict[str, list[str]] = {}
    for entry in entries:
        files.setdefault(entry.run, []).append(entry.name)
    names = {run: common_name(several) for run, several in files.items()}
    number = Counter(names.values())
    return {run: f"{name} ({run[:6]})" if number[name] > 1 else name for run, name in names.items()}


class _ReferenceRow:
    """Reference that other rows are compared with: a training run, one posterior of a run, or of each run."""

    def __init__(self, text: str, rows: Sequence[_RowKey]) -> None:
        self.text = text
        names = list(dict.fromkeys(name for name, _ in rows))
        full_names = {f"{name}, {posterior}": (name, posterior) for name, posterior in rows}
        posteriors = list(dict.fromkeys(posterior for _, posterior in rows if _matches_posterior(posterior, text)))
        if text in full_names:
            self.name, self.posterior = full_names[text]
        elif text in names:
            self.name, self.posterior = text, ""
        elif len(posteriors) == 1:
            self.name, self.posterior = "", posteriors[0]
        elif posteriors:
            matches = [full_name for full_name, (_, posterior) in full_names.items() if posterior in posteriors]
            raise ValueError(f"row '{text}' may be {' or '.join(map(repr, matches))}; give one of them")
        else:
            raise ValueError(format_unknown_name("row", text, [*names, *full_names]))

    def find_for(self, row: _RowKey, rows: Iterable[_RowKey]) -> _RowKey | None:
        """Return the reference row that ``row`` is compared with, among ``rows``; None if it is ``row`` itself."""
        candidates = [key for key in rows if self.name in ("", key[0]) and self.posterior in ("", key[1])]
        candidates = [key for key in candidates if self.name or key[0] == row[0]] or candidates  # prefer the same run
        same = [key for key in candidates if key[1] == row[1]]
        chosen = same[0] if same else candidates[0] if len(candidates) == 1 else None
        return None if chosen == row else chosen


def _matches_posterior(posterior: str, text: str) -> bool:
    """Return whether ``text`` names this posterior, with or without its weight."""
    return text in (posterior, posterior.partition("(w =")[0])


def _build_table(
    conditions: Conditions,
    description: str,
    entries: Sequence[Entry],
    names: Mapping[str, str],
    reference: _ReferenceRow | None,
) -> ComparedTable:
    notes: dict[str, None] = {}
    runs: dict[tuple[_RowKey, Column], dict[str, Score]] = {}
    for run, _, score in entries:
        place, seed = ((names[run], score.source), Column.from_score(score)), score.run.get("seed", "")
        before = runs.setdefault(place, {}).get(seed)
        if before is not None and (before.value, before.stderr) != (score.value, score.stderr):
            seed_text = f" with seed {seed}" if seed else ""
            notes[f"{names[run]}{seed_text} was measured more than once with different results; the last counts"] = None
        runs[place][seed] = score
    groups = {place: group_runs(list(cell.values())) for place, cell in runs.items()}
    rows = list(dict.fromkeys(row for row, _ in groups))
    columns = sorted(dict.fromkeys(column for _, column in groups), key=lambda column: column.sort_key)
    ranked = {column: rank_groups(groups.get((row, column)) for row in rows) for column in columns}
    records = []
    for row in rows:
        compared = reference.find_for(row, rows) if reference else None
        for column in columns:
            if group := groups.get((row, column)):
                other = groups.get((compared, column)) if compared else None
                difference = contrast(group, other) if other else None
                records.append(Record(*row, column, group, is_best(group, ranked[column]), difference))
    better, against = entries[0].score.better, reference.text if reference else ""
    return ComparedTable(conditions, description, better, tuple(records), against, tuple(notes))


def _describe_conditions(
    conditions: Conditions, all_conditions: Sequence[Conditions], file_names: Mapping[str, str]
) -> str:
    named = conditions.by_name
    names = [name for name in ("protocol", "split", "content") if named.get(name)]
    names += ["part"] if named.get("part", "test") != "test" else []
    alike = [one for one in all_conditions if one.metric == conditions.metric]
    names += [name for name in differing_names(alike) if name not in names]
    return ", ".join(f"{condition_title(name)} {conditions.format_value(name, file_names)}" for name in names)


def _explain_separate_tables(conditions: Sequence[Conditions]) -> list[str]:
    """Explain why scores of one metric stand in several tables, by the conditions that differ."""
    notes = []
    for metric in dict.fromkeys(one.metric for one in conditions):
        alike = [one for one in conditions if one.metric == metric]
        parts = []
        for name in differing_names(alike):
            values = ", ".join(dict.fromkeys(one.format_value(name) for one in alike))
            parts.append(f"{condition_title(name)} ({values})")
        if parts:
            notes.append(f"{metric} is in {len(alike)} tables, not to be compared: they differ in {'; '.join(parts)}")
    return notes
