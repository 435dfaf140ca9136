"""The table that ``mmgen quickstart`` ends with, and what it says, in words."""

import math
from collections.abc import Sequence
from pathlib import Path

from mmgen.core.errors import ArtifactError, MmgenError
from mmgen.results.number import Number
from mmgen.results.score import Score, judge_names, read_scores as scores_in
from mmgen.results.table import Cell

__all__ = ["ASKED", "Asked", "asked_of", "final_table", "finding", "read_scores"]

Asked = Sequence[tuple[str, int]]
"""Columns of the table: what is measured, and how many words are given."""

ASKED: Asked = (("correctness", 4), ("correctness", 3), ("coverage", 3), ("recall", 3))
_OF_FINDING = (("correctness", 4), ("coverage", 3), ("recall", 3))
_POOLED = "pooled"  # recall of all descriptions together, which is no column

_Row = list[Score | None]


def read_scores(path: Path) -> list[Score]:
    """The scores that ``mmgen eval`` wrote."""
    try:
        return scores_in(path)
    except ArtifactError as error:
        raise MmgenError(f"{error}; or remove it and run the quickstart again") from None


def asked_of(scores: Sequence[Score]) -> Asked:
    """Columns for scores of any number of attributes: all and one less given, and how varied the latter are."""
    correctness = sorted({s.given for s in scores if s.metric == "correctness" and s.given}, reverse=True)
    coverage = sorted({s.given for s in scores if s.metric == "coverage" and s.given is not None}, reverse=True)
    recall = {s.given for s in scores if s.metric == "recall"}
    varied = [(metric, given) for given in coverage[:1] for metric in ("coverage", "recall")]
    return [
        *(("correctness", given) for given in correctness[:2]),
        *((metric, given) for metric, given in varied if metric == "coverage" or given in recall),
    ]


def _rows(scores: Sequence[Score], asked: Asked) -> dict[str, dict[str, _Row]]:
    """Scores by where z came from and by judge, one for each column, in the order in which they were measured."""
    rows: dict[str, dict[str, _Row]] = {}
    for score, judge in zip(scores, judge_names(scores), strict=True):
        name = f"{score.source}, the prior" if score.posterior == "prior" else score.source
        row = rows.setdefault(name, {}).setdefault(judge, [None] * len(asked))
        if (score.metric, score.given) in asked and score.protocol != _POOLED:
            row[asked.index((score.metric, score.given))] = score
    return rows


def _real(rows: dict[str, dict[str, _Row]], judge: str, asked: Asked) -> list[Cell]:
    """What real pictures get by a judge: its own accuracy, and the recall of one half by the other."""
    cells: list[Cell] = [""] * len(asked)
    for row in (by_judge[judge] for by_judge in rows.values() if judge in by_judge):
        for place, score in enumerate(row):
            if score is not None and score.metric == "recall" and isinstance(score.details.get("ceiling"), float):
                cells[place] = Number(score.details["ceiling"], score.details.get("ceiling_stderr"), "%")
            elif score is not None and score.judge_accuracy and place == 0:
                cells[place] = Number(score.judge_accuracy["mean"], unit="%")
    return cells


def final_table(scores: Sequence[Score], asked: Asked = ASKED) -> tuple[list[str], list[list[Cell]]]:
    """Columns and rows: where z came from against correctness, coverage and recall by each judge, and below what real
    pictures get: the judge's own accuracy, and the recall of one half by the other.
    """
    rows = _rows(scores, asked)
    judges = list(dict.fromkeys(judge for by_judge in rows.values() for judge in by_judge))
    several = len(judges) > 1
    columns = [
        "pictures drawn from",
        *["judge"] * several,
        *(f"{metric}, {given} words given" for metric, given in asked),
    ]
    cells: list[list[Cell]] = [
        [name, *[judge] * several, *("" if score is None else score.number_with_unit for score in row)]
        for name, by_judge in rows.items()
        for judge, row in by_judge.items()
    ]
    for judge in judges:
        real = _real(rows, judge, asked)
        if any(real):
            cells.append(["(real pictures)", *[judge] * several, *real])
    return columns, cells


def finding(scores: Sequence[Score]) -> str:
    """What the quickstart is for, in words: the guided aggregate against all that was fitted, by each judge."""
    rows = _rows(scores, ASKED)
    guided = next((name for name, row in rows.items() if _is_of(row, ("guided",))), None)
    if guided is None:
        return ""
    said, pictures = [], []
    for name, by_judge in rows.items():
        if not _is_of(by_judge, ("true", "aggregate")):
            continue
        told = []
        for judge, row in by_judge.items():
            pairs = [
                (one, other)
                for asked, one, other in zip(ASKED, rows[guided].get(judge, _Row()), row, strict=False)
                if asked in _OF_FINDING and one and other
                if math.isfinite(one.value) and math.isfinite(other.value)
            ]
            gains = [f"{_gain(one, other)} {one.metric} ({one.given} given)" for one, other in pairs]
            told += [f"{f'by {judge} ' * (len(by_judge) > 1)}{', '.join(gains)}"] if gains else []
            pictures += [score.n for pair in pairs for score in pair]
        said += [f"{', '.join(told)}, against {name}"] if told else []
    if not said:
        return ""
    return (
        f"{guided}, differences in points: {'; '.join(said)} (same family, size and steps; {min(pictures):,} pictures "
        "or more each, of concepts in the test split; ± combines their standard errors)."
    )


def _is_of(by_judge: dict[str, _Row], posteriors: Sequence[str]) -> bool:
    return any(score is not None and score.posterior in posteriors for row in by_judge.values() for score in row)


def _gain(ours: Score, rival: Score) -> str:
    both = ours.stderr is not None and rival.stderr is not None
    error = math.hypot(ours.stderr or 0.0, rival.stderr or 0.0) if both else None
    return str(Number(ours.value - rival.value, error, signed=True))
