"""Compute metrics one after another, starting with those that draw most pictures."""

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from mmgen.core.progress import Progress, Work
from mmgen.evaluation import Evaluation
from mmgen.metrics._base import Metric, Score
from mmgen.results.standard_errors import add_clustered_error

if TYPE_CHECKING:
    from mmgen.classifier import Classifier

__all__ = ["evaluate", "evaluate_with_classifiers", "training_images_warning"]

_UNITS = 1000
"""Units of progress per metric and posterior."""


def training_images_warning(evaluation: Evaluation, metrics: Sequence[str]) -> str:
    """Return a warning if some of ``metrics`` evaluate images that the model was trained on; "" otherwise."""
    from mmgen.metrics import get

    trained_on, part = evaluation.loaded.settings.data.split, evaluation.settings.part
    names = [name for name in dict.fromkeys(metrics) if get(name).points]
    if not names or part == "train" or not (share := evaluation.provenance.trained_share):
        return ""
    return (
        f"{100 * share:.1f} % of the {part} part of split '{evaluation.split}' are images that this model was trained "
        f"on, by split '{trained_on}': {', '.join(names)} will look better than on new images; leave --split out for "
        "those"
    )


def evaluate(evaluation: Evaluation, metrics: Sequence[str]) -> Work[list[Score]]:
    """Return the work that computes metrics, for every posterior of an evaluation.

    Args:
        evaluation: The evaluation.
        metrics: Names of metrics.

    Raises:
        UsageError: A metric does not exist, or model, data or settings lack something that it needs. No work is done.
    """
    from mmgen.metrics import get

    members: list[Metric] = [get(name)() for name in dict.fromkeys(metrics)]
    for member in members:
        member.check(evaluation)
    pairs = [
        (member, posterior)
        for member in sorted(members, key=lambda member: member.rank)
        for posterior in (evaluation.posteriors if member.posteriors == "each" else evaluation.posteriors[:1])
    ]

    def measure_all() -> Generator[Progress, None, list[Score]]:
        scores: dict[Metric, list[Score]] = {member: [] for member in members}
        for number, (member, posterior) in enumerate(pairs):
            work = member(evaluation, posterior)
            while True:
                try:
                    fraction = next(work)
                except StopIteration as stop:
                    scores[member] += [_add_provenance(evaluation, member, score) for score in stop.value]
                    break
                yield Progress(int((number + min(1.0, fraction)) * _UNITS))
            yield Progress((number + 1) * _UNITS)
        return [score for member in members for score in scores[member]]

    return Work("measuring", len(pairs) * _UNITS, "", measure_all)


def _add_provenance(evaluation: Evaluation, member: Metric, score: Score) -> Score:
    """Add to a score its run, its conditions and, if several points belong to one picture, the clustered error."""
    score = evaluation.provenance.complete(score)
    if member.points == "averaged":
        score = add_clustered_error(score, evaluation.dataset.read_sources(evaluation.rows_of_points))
    return evaluation.provenance.add_conditions(score, member.judged, bool(member.points), member.conditions)


def evaluate_with_classifiers(
    evaluation: Evaluation, metrics: Sequence[str], classifiers: "Sequence[Classifier | None]"
) -> list[Work[list[Score]]]:
    """Return one work for all metrics, and one for each further classifier with the metrics that can use one.

    All classifiers see the same drawn pictures. Metrics that compare judges are in the first work alone.

    Raises:
        UsageError: As :func:`evaluate`.
    """
    from mmgen.metrics import get

    judged = [name for name in metrics if get(name).examines_pictures and not get(name).compares_judges]
    further = [evaluation.replace_classifier(judge) for judge in classifiers]
    return [evaluate(evaluation, metrics), *(evaluate(other, judged) for other in further if judged)]
