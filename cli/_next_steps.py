"""Sentences below the table of ``mmgen quickstart --images``: the weakest words, and what to do about them."""

import math
from collections.abc import Iterator, Mapping, Sequence

from mmgen.cli._quickstart_table import PLAIN, is_plain
from mmgen.results.score import Score

__all__ = ["describe_next_steps"]

_READABLE = 90.0
"""Accuracy in percent below which a judge's reading is doubtful."""
_SHORT = 5.0
"""Points below the judge's own accuracy from which drawn pictures count as worse than real ones."""
_WEAKEST = 3


def describe_next_steps(scores: Sequence[Score], larger: str = "") -> list[str]:
    """Describe, weakest first, the words that are drawn or read badly, and rows of the table to leave out or to prefer.

    Args:
        scores: Scores of the fitted posterior with and without guidance, and of the plain conditional VAE.
        larger: The command that keeps more detail of the pictures; "" if they keep what they have.

    Returns:
        Sentences of one line each; none without a score of correctness.
    """
    first = next((score.judge for score in scores if score.metric == "correctness"), None)
    copied = _describe_copies(scores)
    scores = [score for score in scores if score.judge == first]
    rows = {name: _by_column(scores, name) for name in ("guided", "aggregate", PLAIN)}
    guided, fitted, plain = rows.values()
    best = guided or fitted
    given = [number for metric, number in best if metric == "correctness"]
    if not given:
        return []
    lines = list(_weakest_words(best["correctness", max(given)], larger))
    if guided and fitted and not any(_differ(score, fitted[key]) for key, score in guided.items() if key in fitted):
        source = next(iter(guided.values())).source
        lines.append(f"{source} differs from q_agg by less than two standard errors everywhere: leave guidance out.")
    ahead = [
        f"{number} given: {plain[metric, number].value:.1f} against {score.value:.1f} %"
        for (metric, number), score in best.items()
        if metric == "correctness" and (metric, number) in plain
        if plain[metric, number].value > score.value and _differ(plain[metric, number], score)
    ]
    if ahead:
        lines.append(
            f"The plain conditional VAE draws more given words right ({'; '.join(ahead)}): look whether it varies what "
            "is left open (coverage)."
        )
    return [*lines, *copied]


def _describe_copies(scores: Sequence[Score]) -> list[str]:
    """Return a sentence for each fitted posterior that copies more pictures than held-out pictures look like copies."""
    copied: dict[str, Score] = {}
    for score in scores:
        if score.metric == "copies" and score.protocol == "pixels" and score.posterior in ("aggregate", "guided"):
            copied.setdefault(score.source, score)  # with the most words given, which come first
    return [
        f"{source}: {score.number_with_unit} of its pictures nearly equal one of yours, of test pictures "
        f"{score.details['ceiling']:.1f} %: look at them in the report; train for fewer steps, or add pictures."
        for source, score in copied.items()
        if score.details.get("low", 0.0) > score.details.get("ceiling", 100.0)
    ]


def _by_column(scores: Sequence[Score], row: str) -> dict[tuple[str, int], Score]:
    """Return the scores of a posterior, or of the plain conditional VAE, by metric and number of given words."""
    return {
        (score.metric, score.given): score
        for score in scores
        if score.given is not None and (is_plain(score) if row == PLAIN else score.posterior == row)
        if math.isfinite(score.value)
    }


def _differ(one: Score, other: Score) -> bool:
    return abs(one.value - other.value) > 2 * math.hypot(one.stderr or 0.0, other.stderr or 0.0)


def _weakest_words(score: Score, larger: str) -> Iterator[str]:
    """Yield a sentence for each of the weakest attributes, with what to do."""
    accuracy: Mapping[str, float] = score.judge_accuracy or {}
    known = sorted((drawn, name) for name, drawn in score.by_attribute.items() if name in accuracy)
    for drawn, name in known[:_WEAKEST]:
        real = accuracy[name]
        advice = ""
        if real < _READABLE:
            advice = "the judge reads real pictures badly, so look with your own eyes; " + (
                f"larger pictures keep more detail: {larger}" if larger else "more pictures of each value would help"
            )
        elif drawn < real - _SHORT:
            advice = "the model draws it badly; train longer, or add pictures of each value"
        if advice:
            yield f"{name}: {drawn:.1f} % drawn right, {real:.1f} % of real pictures read right: {advice}."
