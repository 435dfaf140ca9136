"""The final table of ``mmgen quickstart``, and its sentence of differences."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmgen.core.errors import ArtifactError, MmgenError
from mmgen.results.number import Number
from mmgen.results.score import Score, classifier_names, read_scores as scores_in

if TYPE_CHECKING:
    from mmgen.results.table import Cell

__all__ = ["COLUMNS", "Columns", "columns_for", "final_table", "finding", "read_scores"]

Columns = Sequence[tuple[str, int]]
"""Columns of the table: a metric, and how many words are given."""

COLUMNS: Columns = (("correctness", 4), ("correctness", 3), ("coverage", 3), ("recall", 3))
_COMPARED = (("correctness", 4), ("coverage", 3), ("recall", 3))
_POOLED = "pooled"  # recall of all descriptions together, which is no column

_Row = list[Score | None]


def read_scores(path: Path) -> list[Score]:
    """Return the scores that ``mmgen eval`` wrote."""
    try:
        return scores_in(path)
    except ArtifactError as error:
        raise MmgenError(f"{error}; or remove it and run the quickstart again") from None


def columns_for(scores: Sequence[Score]) -> Columns:
    """Return the columns: correctness with all attributes given and with one less, coverage and recall."""
    correctness = sorted({s.given for s in scores if s.metric == "correctness" and s.given}, reverse=True)
    coverage = sorted({s.given for s in scores if s.metric == "coverage" and s.given is not None}, reverse=True)
    recall = {s.given for s in scores if s.metric == "recall"}
    varied = [(metric, given) for given in coverage[:1] for metric in ("coverage", "recall")]
    return [
        *(("correctness", given) for given in correctness[:2]),
        *((metric, given) for metric, given in varied if metric == "coverage" or given in recall),
    ]


def _rows(scores: Sequence[Score], columns: Columns) -> dict[str, dict[str, _Row]]:
    """Return scores by posterior and classifier, one for each column, in the order of measurement."""
    rows: dict[str, dict[str, _Row]] = {}
    for score, judge in zip(scores, classifier_names(scores), strict=True):
        name = f"{score.source}, the prior" if score.posterior == "prior" else score.source
        row = rows.setdefault(name, {}).setdefault(judge, [None] * len(columns))
        if (score.metric, score.given) in columns and score.protocol != _POOLED:
            row[columns.index((score.metric, score.given))] = score
    return rows


def _cell(score: Score | None) -> "Cell":
    return "" if score is None else score.number_with_unit


def _real_pictures(rows: dict[str, dict[str, _Row]], judge: str, columns: Columns) -> "list[Cell]":
    """Return a classifier's scores of real pictures: its accuracy, and the recall of one half by the other."""
    cells: list[Cell] = [""] * len(columns)
    for row in (by_judge[judge] for by_judge in rows.values() if judge in by_judge):
        for place, score in enumerate(row):
            if score is not None and score.metric == "recall" and isinstance(score.details.get("ceiling"), float):
                cells[place] = Number(score.details["ceiling"], score.details.get("ceiling_stderr"), "%")
            elif score is not None and score.judge_accuracy and place == 0:
                cells[place] = Number(score.judge_accuracy["mean"], unit="%")
    return cells


def final_table(scores: Sequence[Score], columns: Columns = COLUMNS) -> "tuple[list[str], list[list[Cell]]]":
    """Return headings and rows: posteriors by each judge, and below them real pictures by each judge."""
    rows = _rows(scores, columns)
    judges = list(dict.fromkeys(judge for by_judge in rows.values() for judge in by_judge))
    several = len(judges) > 1
    headings = [
        "pictures drawn from",
        *["judge"] * several,
        *(f"{metric}, {given} words given" for metric, given in columns),
    ]
    cells: list[list[Cell]] = [
        [name, *[judge] * several, *map(_cell, row)]
        for name, by_judge in rows.items()
        for judge, row in by_judge.items()
    ]
    for judge in judges:
        real = _real_pictures(rows, judge, columns)
        if any(real):
            cells.append(["(real pictures)", *[judge] * several, *real])
    return headings, cells


def finding(scores: Sequence[Score]) -> str:
    """Return sentences on the differences between the guided posterior and the other fitted ones."""
    rows = _rows(scores, COLUMNS)
    guided = next((name for name, row in rows.items() if _is_of(row, ("guided",))), None)
    if guided is None:
        return ""
    rivals, pictures = [], []
    for name, by_judge in rows.items():
        if not _is_of(by_judge, ("true", "aggregate")):
            continue
        by_each = []
        for judge, row in by_judge.items():
            pairs = [
                (one, other)
                for column, one, other in zip(COLUMNS, rows[guided].get(judge, _Row()), row, strict=False)
                if column in _COMPARED and one and other
                if math.isfinite(one.value) and math.isfinite(other.value)
            ]
            gains = [f"{_gain(one, other)} {one.metric} ({one.given} given)" for one, other in pairs]
            by_each += [f"{f'by {judge} ' * (len(by_judge) > 1)}{', '.join(gains)}"] if gains else []
            pictures += [score.n for pair in pairs for score in pair]
        rivals += [f"{', '.join(by_each)}, against {name}"] if by_each else []
    if not rivals:
        return ""
    return (
        f"{guided}, differences in points: {'; '.join(rivals)} (same family, size and steps; {min(pictures):,} "
        "pictures or more each, of concepts in the test split; ± combines their standard errors)."
    )


def _is_of(by_judge: dict[str, _Row], posteriors: Sequence[str]) -> bool:
    return any(score is not None and score.posterior in posteriors for row in by_judge.values() for score in row)


def _gain(ours: Score, rival: Score) -> str:
    known = rival.stderr is not None and ours.stderr is not None
    error = math.hypot(ours.stderr or 0, rival.stderr or 0) if known else None
    return str(Number(ours.value - rival.value, error, signed=True))
