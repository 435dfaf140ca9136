"""The main result of a report in words: correctness and coverage of the posteriors of each model."""

from dataclasses import dataclass

from mmgen.figures.session import ReportFiles
from mmgen.results.ranking import MeasuredPosterior, rank_posteriors
from mmgen.results.score import Score

__all__ = ["Finding", "describe_findings", "scores_of_model"]


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
        if (rows := rank_posteriors(scores_of_model(report_files, group.header.content_id)))
    ]


def scores_of_model(report_files: ReportFiles, model: str) -> list[Score]:
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


def _name(score: Score) -> str:
    """Return the plain name of a posterior with that of the field: "where real pictures lie (q_agg)"."""
    return f"{score.plain_name} ({score.source})"


def _describe_model(name: str, rows: list[MeasuredPosterior]) -> Finding:
    best, *others = rows
    given = f"{best.right.given} given attributes" if best.right.given != 1 else "given attribute"
    text = f"{name} draws best from {_name(best.right)}."
    text += f" {best.right.number_with_unit} of the {given} are right (correctness)."
    if best.varied is not None:
        text += (
            f" What is left open varies as in real pictures to {best.varied.number_with_unit} (coverage, "
            f"{best.varied.given} given)."
        )
    if not others:
        return Finding(text)
    listed = "; ".join(f"{_name(row.right)} {_format_scores(row)}" for row in others)
    return Finding(text, f"The others{', by the sum of the two' if best.varied else ''}: {listed}.")
