"""The main result of a report in words: correctness and coverage of the posteriors of each model."""

from collections.abc import Mapping
from dataclasses import dataclass

from mmgen.figures.session import ReportFiles
from mmgen.results.conditions import Conditions
from mmgen.results.naming import RETRIEVAL
from mmgen.results.score import Score

__all__ = ["Finding", "describe_findings"]

_RIGHT, _VARIED = "correctness", "coverage"


@dataclass(frozen=True)
class Finding:
    """Sentences that compare the posteriors of one model by their scores.

    Attributes:
        best: Sentence on the posterior with the highest sum of correctness and coverage.
        others: Sentence on the other posteriors; "" for a single posterior.
    """

    best: str
    others: str = ""


@dataclass(frozen=True)
class _Row:
    """Correctness and coverage of one posterior, each for the descriptions with the most attributes."""

    right: Score
    varied: Score | None

    @property
    def sum(self) -> tuple[bool, float]:
        """Sort key of posteriors: those with both scores before others, then by the sum of their scores."""
        return self.varied is not None, self.right.value + (self.varied.value if self.varied else 0.0)

    @property
    def scores_text(self) -> str:
        return " and ".join(str(score.number_with_unit) for score in (self.right, self.varied) if score)


def describe_findings(report_files: ReportFiles) -> list[Finding]:
    """Describe in sentences how the posteriors of each model score, by the first classifier on the first dataset."""
    return [
        _describe_model(report_files.names[group.header.content_id], rows)
        for group in report_files.groups
        if (rows := _rank_posteriors(report_files, group.header.content_id))
    ]


def _rank_posteriors(report_files: ReportFiles, model: str) -> list[_Row]:
    """Rank the posteriors of a model by the sum of their comparable scores, the highest first."""
    owners = report_files.models
    # One sentence holds numbers of the same classifier on the same data.
    measured: dict[Conditions, dict[tuple[str, int], dict[str, Score]]] = {}
    for score in report_files.scores:
        identity = str(score.ids.get("aggregate") or score.ids.get("model") or "")
        if owners.get(identity, identity) != model or score.metric not in (_RIGHT, _VARIED):
            continue
        if score.posterior in ("prior", RETRIEVAL) or not score.given or score.value != score.value:
            continue
        named = Conditions.from_score(score)
        further = tuple(one for one in named.further if one[0] in ("split", "part"))
        alike = named._replace(metric="", unit="", further=further)
        measured.setdefault(alike, {}).setdefault((score.metric, score.given), {}).setdefault(score.source, score)
    for found in measured.values():
        right, varied = _with_most_attributes(found, _RIGHT), _with_most_attributes(found, _VARIED)
        if right:
            rows = [_Row(score, varied.get(source)) for source, score in right.items()]
            return sorted(rows, key=lambda row: row.sum, reverse=True)
    return []


def _with_most_attributes(scores: Mapping[tuple[str, int], dict[str, Score]], metric: str) -> dict[str, Score]:
    """Return the scores of a metric by posterior, for the descriptions with the most attributes."""
    return scores.get(max((key for key in scores if key[0] == metric), default=("", 0)), {})


def _describe_model(name: str, rows: list[_Row]) -> Finding:
    best, *others = rows
    count = best.right.given
    words = f"{count} described attributes" if count != 1 else "described attribute"
    text = f"{name}: drawn from {best.right.source}, pictures show {best.right.number_with_unit} of the {words}"
    if best.varied is not None:
        text += (
            f", and coverage of unspecified attributes is {best.varied.number_with_unit} with {best.varied.given} given"
        )
    if not others:
        return Finding(f"{text}.")
    listed = "; ".join(f"{row.right.source} {row.scores_text}" for row in others)
    return Finding(f"{text}.", f"The others{', by the sum of the two' if best.varied else ''}: {listed}.")
