"""The main result of a report: correctness and coverage of the posteriors of each model, in a sentence and a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from mmgen.figures.session import ReportFiles
from mmgen.results.groups import MeasuredPosterior, rank_posteriors, shared_conditions
from mmgen.results.naming import CONDITIONAL
from mmgen.results.score import Score

__all__ = ["Finding", "describe_findings", "scores_of_model"]


@dataclass(frozen=True)
class Finding:
    """Comparison of the posteriors of one model by their scores.

    Attributes:
        best: Sentences on the posterior with the highest sum of correctness and coverage.
        model: Name of the model.
        columns: Headings of the scores in ``rows``.
        rows: For each plain conditional VAE and then for each posterior, the best first, its plain name, its name with
            formula, and its scores as text.
    """

    best: str
    model: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


def describe_findings(report_files: ReportFiles) -> list[Finding]:
    """Compare the posteriors of each model by the first classifier on the first dataset."""
    return [
        _describe_model(report_files.names[group.header.content_id], rows, _rivals_of(rows[0], report_files.scores))
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


def _rivals_of(best: MeasuredPosterior, scores: Sequence[Score]) -> list[MeasuredPosterior]:
    """Return plain conditional VAEs that were measured as the best posterior was, by model."""

    def like(one: Score | None) -> dict[str, Score]:
        return {
            str(score.ids.get("model")): score
            for score in scores
            if one is not None and score.base == CONDITIONAL and (score.metric, score.given) == (one.metric, one.given)
            if shared_conditions(score) == shared_conditions(one)
        }

    varied = like(best.varied)
    return [MeasuredPosterior(score, varied.get(model)) for model, score in like(best.right).items()]


def _describe_model(name: str, rows: list[MeasuredPosterior], rivals: list[MeasuredPosterior]) -> Finding:
    right, varied = rows[0].right, rows[0].varied
    given = f"{right.given} given attributes" if right.given != 1 else "given attribute"
    text = f"{name} draws best from {right.plain_name} ({right.source})."
    text += f" {right.number_with_unit} of the {given} are right (correctness)."
    if varied is not None:
        text += (
            f" What is left open varies as in real pictures to {varied.number_with_unit} (coverage, {varied.given} "
            "given)."
        )
    columns = [f"correctness, {right.given} given", *([f"coverage, {varied.given} given"] if varied else [])]
    rows = [*rivals, *rows]
    sources = [row.right.source for row in rows]
    listed = []
    for row, source in zip(rows, sources, strict=True):
        file = f", {row.right.run.get('name', '?')}" if sources.count(source) > 1 else ""
        scores = [row.right, *([row.varied] if varied else [])]
        cells = tuple("–" if score is None else str(score.number_with_unit) for score in scores)
        plain = row.right.plain_name
        listed.append((plain[:1].upper() + plain[1:], f"{row.right.title}{file}", cells))
    return Finding(text, name, tuple(columns), tuple(listed))
