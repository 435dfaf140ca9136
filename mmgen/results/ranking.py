"""Ranking of the posteriors of a model by their scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mmgen.results.conditions import Conditions
from mmgen.results.naming import RETRIEVAL
from mmgen.results.score import Score

__all__ = ["MeasuredPosterior", "fit_identity", "rank_posteriors", "shared_conditions"]

_Identity = tuple[str, str]
"""Name of a posterior, and content id of the file of its fit."""


@dataclass(frozen=True)
class MeasuredPosterior:
    """Correctness and coverage of one posterior, each for the descriptions with the most attributes."""

    right: Score
    varied: Score | None

    @property
    def sum(self) -> tuple[bool, float]:
        """Sort key: posteriors with both scores before others, then by the sum of their scores."""
        return self.varied is not None, self.right.value + (self.varied.value if self.varied else 0.0)


def rank_posteriors(scores: Sequence[Score]) -> list[MeasuredPosterior]:
    """Rank the posteriors of one model by the sum of correctness and coverage, the highest first.

    Scores of the first attribute classifier on the first dataset count. The prior is left out.

    Args:
        scores: Scores of one model; others than correctness and coverage are ignored.
    """
    alike: dict[Conditions, dict[tuple[str, int], dict[_Identity, Score]]] = {}
    for score in scores:
        if score.metric not in ("correctness", "coverage") or score.posterior in ("prior", RETRIEVAL):
            continue
        if score.given and math.isfinite(score.value):
            same = alike.setdefault(shared_conditions(score), {})
            same.setdefault((score.metric, score.given), {}).setdefault(fit_identity(score), score)
    for found in alike.values():
        right, varied = _with_most_attributes(found, "correctness"), _with_most_attributes(found, "coverage")
        if right:
            rows = [MeasuredPosterior(score, varied.get(identity)) for identity, score in right.items()]
            return sorted(rows, key=lambda row: row.sum, reverse=True)
    return []


def shared_conditions(score: Score) -> Conditions:
    """Return the conditions that scores of several metrics share: dataset, judge, protocol, split and part."""
    named = Conditions.from_score(score)
    further = tuple(one for one in named.further if one[0] in ("split", "part"))
    return named._replace(metric="", unit="", further=further)


def fit_identity(score: Score) -> _Identity:
    """Return the name of a posterior and the content id of its fit."""
    return score.source, score.ids.get("aggregate", "")


def _with_most_attributes(
    scores: Mapping[tuple[str, int], dict[_Identity, Score]], metric: str
) -> dict[_Identity, Score]:
    return scores.get(max((key for key in scores if key[0] == metric), default=("", 0)), {})
