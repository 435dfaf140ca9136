"""All metrics that are asked for, one after another, those first that need the most pictures."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mmgen.core.errors import UsageError
from mmgen.core.progress import Progress, Work
from mmgen.evaluation.evaluation import Evaluation
from mmgen.metrics._base import Metric, Score
from mmgen.results.conditions import condition_text
from mmgen.results.score import other_data
from mmgen.results.standard_errors import with_clusters

if TYPE_CHECKING:
    from mmgen.classifier import Classifier

__all__ = ["evaluate", "evaluate_by_all", "notice"]

_UNITS = 1000
"""Units of progress per metric and posterior."""


_COMPARED = ("samples", "real")
"""Names of the details that are conditions of every metric that has them: importance samples, real pictures."""


def _with_conditions(score: Score, evaluation: Evaluation, metric: Metric) -> Score:
    """The score with what others must share to be compared with it, its seed, and how the model was trained."""
    sampled = metric.judged or metric.scores_points
    conditions = {"split": evaluation.split, "part": evaluation.settings.part} if sampled else {}
    if metric.scores_points and evaluation.pixels == "drawn":  # else the dataset tells
        conditions["pixels"] = evaluation.pixels
    compared = (name for name in (*_COMPARED, *metric.conditions) if score.details.get(name))
    conditions |= {name: condition_text(score.details[name]) for name in compared}
    conditions |= other_data(evaluation.dataset.header.settings)
    details = dict(score.details)
    if metric.scores_points:
        trained: dict[str, Any] = {
            "trained_share": evaluation.trained_share,
            "pixels": evaluation.pixels,
            "objective": evaluation.loaded.model_header.settings.get("objective"),
        }
        details = {name: value for name, value in trained.items() if value} | details
    return replace(score, conditions=conditions, seed=evaluation.settings.seed if sampled else None, details=details)


def notice(evaluation: Evaluation, metrics: Sequence[str]) -> str:
    """A warning where some of ``metrics`` score images that the model was trained on; "" otherwise."""
    from mmgen.metrics import get

    trained_on, part = evaluation.loaded.settings.data.split, evaluation.settings.part
    names = [name for name in dict.fromkeys(metrics) if get(name).scores_points]
    if not names or part == "train" or not evaluation.trained_share:
        return ""
    return (
        f"{100 * evaluation.trained_share:.1f} % of the {part} part of split '{evaluation.split}' are images that this "
        f"model was trained on, by split '{trained_on}': {', '.join(names)} will look better than on new images; leave "
        "--split out for those"
    )


def evaluate(evaluation: Evaluation, metrics: Sequence[str]) -> Work[list[Score]]:
    """Measure ``metrics`` (names) for every posterior of ``evaluation``.

    Raises:
        UsageError: There is no such metric, or it cannot be asked of this model; before any work is done.
    """
    from mmgen.metrics import get

    members: list[Metric] = [get(name)() for name in dict.fromkeys(metrics)]
    for member in members:
        if evaluation.loaded.tilt and not member.takes_guidance:
            raise UsageError(
                f"got guidance for {', '.join(name for name in metrics if get(name) is type(member))}, which asks no "
                "posterior of a description; leave one or the other out"
            )
        if member.judged:
            evaluation.judge  # noqa: B018  # says what is wrong with it
            evaluation.check_draws()
        member.check(evaluation)
    # What needs the most pictures comes first, so that the others use all of them.
    order = sorted(members, key=lambda member: member.rank)
    questions = [
        (member, posterior)
        for member in order
        for posterior in (evaluation.posteriors if member.per_posterior else evaluation.posteriors[:1])
    ]

    def run() -> Generator[Progress, None, list[Score]]:
        scores: dict[Metric, list[Score]] = {member: [] for member in members}
        for number, (member, posterior) in enumerate(questions):
            asked = member(evaluation, posterior)
            while True:
                try:
                    fraction = next(asked)
                except StopIteration as stop:
                    named = [evaluation.named(score) for score in stop.value]
                    if member.values_of_points:
                        named = [with_clusters(score, evaluation.sources_of_points) for score in named]
                    scores[member] += [_with_conditions(score, evaluation, member) for score in named]
                    break
                yield Progress(int((number + min(1.0, fraction)) * _UNITS))
            yield Progress((number + 1) * _UNITS)
        return [score for member in members for score in scores[member]]

    return Work("measuring", len(questions) * _UNITS, "", run)


def evaluate_by_all(
    evaluation: Evaluation, metrics: Sequence[str], others: "Sequence[Classifier | None]"
) -> list[Work[list[Score]]]:
    """Measure ``metrics``, and what judges have a say in by ``others`` too, who look at the same pictures.

    Raises:
        UsageError: As :func:`evaluate`.
    """
    from mmgen.metrics import get

    judged = [name for name in metrics if get(name).judged]
    return [evaluate(evaluation, metrics), *(evaluate(evaluation.beside(judge), judged) for judge in others)]
