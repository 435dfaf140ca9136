"""Scores of one evaluation as a table."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.results.number import Number
from mmgen.results.score import Score, classifier_names
from mmgen.results.table import Cell, Table

__all__ = ["Scores", "tabulate_scores"]


def tabulate_scores(scores: Sequence[Score], title: str = "", details: Mapping[str, str] | None = None) -> Table:
    """Make a table with a row for each score of one evaluation; columns that would be empty are left out.

    Args:
        scores: The scores.
        title: Title of the table.
        details: Further columns: heading, and name of a number in :attr:`mmgen.results.score.Score.details`, which may
            have an error under the same name with "_stderr".
    """
    units = {score.unit for score in scores}
    judges = classifier_names(scores)
    one_unit = len(units) == 1
    several = len({*judges} - {""}) > 1
    columns: list[tuple[str, list[Cell]]] = []
    if {score.quantity for score in scores} != {title} or not title:
        columns.append(("measured", [score.quantity or score.metric for score in scores]))
    columns += [
        ("drawn from", [score.source for score in scores]),
        ("judge", list(judges) if several else []),
        ("given", ["" if score.given is None else str(score.given) for score in scores]),
        ("protocol", [score.protocol for score in scores]),
        (
            f"{scores[0].unit if one_unit else 'value'} ± standard error",
            [score.number if one_unit else score.number_with_unit for score in scores],
        ),
        ("n", [f"{score.n:,}" for score in scores]),
    ]
    columns += [(name, [_detail_cell(score.details, key) for score in scores]) for name, key in (details or {}).items()]
    columns.append(
        ("judge %", ["" if score.real_accuracy is None else f"{score.real_accuracy:.1f}" for score in scores])
    )
    used = [(name, cells) for name, cells in columns if any(cells)]
    return Table(title, [name for name, _ in used], list(zip(*(cells for _, cells in used), strict=True)))


def _detail_cell(details: Mapping[str, Any], key: str) -> Cell:
    value, error = details.get(key), details.get(f"{key}_stderr")
    if isinstance(value, float):
        return Number(value, error if isinstance(error, float) else None)
    return f"{value:,}" if type(value) is int else "" if value is None else str(value)


class Scores(list[Score]):
    """List of the scores of one evaluation, which a notebook or terminal prints as a table.

    Args:
        scores: The scores.
        path: The file of the scores; None if they were not written to a file.
    """

    def __init__(self, scores: Iterable[Score], path: Path | None = None) -> None:
        super().__init__(scores)
        self.path = path

    def __repr__(self) -> str:
        return tabulate_scores(self).text() if self else "no scores"

    def _repr_html_(self) -> str:
        return tabulate_scores(self).html() if self else "no scores"
