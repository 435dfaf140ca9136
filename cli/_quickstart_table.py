"""The final table of ``mmgen quickstart``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmgen.core.errors import ArtifactError, MmgenError
from mmgen.results.naming import CONDITIONAL
from mmgen.results.number import Number
from mmgen.results.score import Score, classifier_names, read_scores as scores_in

if TYPE_CHECKING:
    from mmgen.results.table import Cell


Columns = Sequence[tuple[str, int]]
"""Columns of the table: a metric and the number of given words."""

_POOLED = "pooled"  # recall of all descriptions together, which is no column
_PIXELS = "pixels"  # copies by pixels, which are in the rows of all judges, as agreement is

_Row = list[Score | None]


def read_scores(path: Path) -> list[Score]:
    """Read a file of scores; the error for a damaged file advises to remove it."""
    try:
        return scores_in(path)
    except ArtifactError as error:
        raise MmgenError(f"{error}; or remove it and run the quickstart again") from None


def choose_columns(scores: Sequence[Score]) -> Columns:
    """Choose columns: correctness with the two largest numbers of given words, agreement with the smallest, where most
    words are open, and the others with the largest that they have.
    """

    def numbers(metric: str) -> list[int]:
        return sorted({s.given for s in scores if s.metric == metric and s.given}, reverse=True)

    return [
        *(("correctness", given) for given in numbers("correctness")[:2]),
        *((metric, given) for metric in ("coverage", "recall") for given in numbers(metric)[:1]),
        *(("agreement", given) for given in numbers("agreement")[-1:]),
        *(("copies", given) for given in numbers("copies")[:1]),
    ]


def _group_scores(scores: Sequence[Score], columns: Columns) -> dict[str, dict[str, _Row]]:
    """Group scores by posterior and attribute classifier into rows with a score or None for each column."""
    rows: dict[str, dict[str, _Row]] = {}
    families = {score.family for score in scores if score.posterior == "aggregate" and score.family}
    names = {id(score): _row_name(score, several_families=len(families) > 1) for score in scores}
    for score, judge in zip(scores, classifier_names(scores), strict=True):
        if _of_all_judges(score) is not None:
            continue
        row = rows.setdefault(names[id(score)], {}).setdefault(judge, [None] * len(columns))
        if (score.metric, score.given) in columns and score.protocol != _POOLED:
            row[columns.index((score.metric, score.given))] = score
    for score in scores:
        if _of_all_judges(score) and (score.metric, score.given) in columns:
            for row in rows.get(names[id(score)], {}).values():
                row[columns.index((score.metric, score.given))] = score
    return rows


def _of_all_judges(score: Score) -> bool | None:
    """Return whether a score of copies or agreement stands in the rows of all judges; None for other metrics."""
    if score.metric not in ("copies", "agreement"):
        return None
    return score.protocol == _PIXELS or score.quantity == "agreement"


def _row_name(score: Score, several_families: bool) -> str:
    """Return the name of a score's row: its posterior, with its family where there are several."""
    if several_families and score.posterior in ("aggregate", "guided") and score.family:
        return f"{score.source}, {score.family}"
    return f"{score.source}, the prior" if score.posterior == "prior" and not is_plain(score) else score.source


def is_plain(score: Score) -> bool:
    """Return True for a score of the plain conditional VAE."""
    return score.base == CONDITIONAL


def _format_cell(score: Score | None) -> "Cell":
    return "" if score is None else score.number_with_unit


def _real_picture_cells(rows: dict[str, dict[str, _Row]], judge: str, columns: Columns) -> "list[Cell]":
    """Return a classifier's row for real pictures: its accuracy, and recall, agreement and copies of held-out ones."""
    cells: list[Cell] = [""] * len(columns)
    for row in (by_judge[judge] for by_judge in rows.values() if judge in by_judge):
        for place, score in enumerate(row):
            if (
                score is not None
                and score.metric in ("recall", "copies", "agreement")
                and isinstance(score.details.get("ceiling"), float)
            ):
                cells[place] = Number(score.details["ceiling"], score.details.get("ceiling_stderr"), "%")
            elif score is not None and score.judge_accuracy and place == 0:
                cells[place] = Number(score.judge_accuracy["mean"], unit="%")
    return cells


def final_table(scores: Sequence[Score], columns: Columns) -> "tuple[list[str], list[list[Cell]]]":
    """Return headings and rows of the final table: a row for each posterior and judge, then for real pictures."""
    rows = _group_scores(scores, columns)
    judges = list(dict.fromkeys(judge for by_judge in rows.values() for judge in by_judge))
    several = len(judges) > 1
    headings = [
        "pictures drawn from",
        *["judge"] * several,
        *(f"{metric}, {given} word{'s' * (given != 1)} given" for metric, given in columns),
    ]
    cells: list[list[Cell]] = [
        [name, *[judge] * several, *map(_format_cell, row)]
        for name, by_judge in rows.items()
        for judge, row in by_judge.items()
    ]
    for judge in judges:
        real = _real_picture_cells(rows, judge, columns)
        if any(real):
            cells.append(["(real pictures)", *[judge] * several, *real])
    return headings, cells
