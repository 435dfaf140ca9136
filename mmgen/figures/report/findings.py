"""The main result of a report in words: correctness and coverage of the posteriors of each model."""

from dataclasses import dataclass

from mmgen.figures.session import ReportFiles
from mmgen.results.ranking import MeasuredPosterior, rank_posteriors
from mmgen.results.score import Score

__all__ = ["Finding", "describe_findings"]


@dataclass(frozen=True)
class Finding:
    """Sentences that compare the posteriors of one model by their scores.

    Attributes:
        best: Sentence on the posterior with the highest sum of correctness and coverage.
        others: Sentence on the other posteriors; "" for a single posterior.
    """

    best: str
    others: str = ""


def describe_findings(report_files: ReportFiles) -> list[Finding]:
    """Describe in sentences how the posteriors of each model score, by the first classifier on the first dataset."""
    return [
        _describe_model(report_files.names[group.header.content_id], rows)
        for group in report_files.groups
        if (rows := rank_posteriors(_scores_of_model(report_files, group.header.content_id)))
    ]


def _scores_of_model(report_files: ReportFiles, model: str) -> list[Score]:
    """Return the scores of a model and of its fitted posteriors."""
    owners = report_files.models
    identities = [str(score.ids.get("aggregate") or score.ids.get("model") or "") for score in report_files.scores]
    return [
        score
        for score, identity in zip(report_files.scores, identities, strict=True)
        if owners.get(identity, identity) == model
    ]


def _format_scores(row: MeasuredPosterior) -> str:
    return " and ".join(str(score.number_with_unit) for score in (row.right, row.varied) if score)


def _describe_model(name: str, rows: list[MeasuredPosterior]) -> Finding:
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
    listed = "; ".join(f"{row.right.source} {_format_scores(row)}" for row in others)
    return Finding(f"{text}.", f"The others{', by the sum of the two' if best.varied else ''}: {listed}.")
