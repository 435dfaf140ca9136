"""Precision and recall of nearest neighbours: their scores."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.evaluation.compared import Compared, compare_all
from mmgen.evaluation.neighbours import inside
from mmgen.evaluation.queries import weighted_mean
from mmgen.evaluation.real import Points
from mmgen.metrics._base import Score
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["overlap_scores"]

Floats = NDArray[np.float64]


def overlap_scores(
    metric: str, evaluation: "Evaluation", posterior: str, of_real: bool
) -> Generator[float, None, list[Score]]:
    """Scores of all numbers of attributes that are left out.

    Args:
        metric: What they are called.
        evaluation: What is asked.
        posterior: Where z comes from.
        of_real: The share of real pictures among drawn ones (recall), else of drawn among real ones (precision).
    """
    found = yield from compare_all(evaluation, posterior)
    return [_score(metric, evaluation, posterior, compared, of_real) for compared in found]


def _score(metric: str, evaluation: "Evaluation", posterior: str, compared: Compared, of_real: bool) -> Score:
    seed = evaluation.settings.seed
    values, weights = _values(compared, compared.pairs, of_real)
    real, _ = _values(compared, compared.ceiling_pairs, of_real)
    mean, ceiling = weighted_mean(values, weights, seed), weighted_mean(real, weights, seed)
    below = weighted_mean(real - values, weights, seed)
    return Score(
        metric=metric,
        quantity=metric,
        value=mean.value,
        stderr=None if mean.stderr is None else share_error(mean.value, mean.stderr, compared.n),
        unit="%",
        better="higher",
        n=compared.n,
        posterior=posterior,
        given=compared.queries.given_count,
        protocol=compared.protocol,
        judge_accuracy=evaluation.judge.accuracy or None,
        ids=evaluation.judged_ids,
        details={
            **compared.about(),
            "ceiling": ceiling.value,
            "ceiling_stderr": None
            if ceiling.stderr is None
            else share_error(ceiling.value, ceiling.stderr, compared.n),
            "below_ceiling": below.value,
            "below_ceiling_stderr": below.stderr,
            "splits_sd": mean.splits_sd,
            "pixels": "sampled" if evaluation.draws.sampled else "mean",
        },
    )


def _values(compared: Compared, pairs: list[tuple[Points, Points]], of_real: bool) -> tuple[Floats, Floats]:
    """Percent of each description's pictures that lie among the others, and the weight of each description.

    Of pooled descriptions every picture weighs the same, so that those without any are passed over.
    """
    each = []
    for candidates, references in pairs:
        points, others = (references, candidates) if of_real else (candidates, references)
        if compared.protocol == "pooled":
            lies = np.split(inside(np.concatenate(points), np.concatenate(others)), np.cumsum(list(map(len, points))))
            each.append([100.0 * part.mean() for part in lies if len(part)])
        else:
            each.append([100.0 * inside(a, b).mean() for a, b in zip(points, others, strict=True)])
    counts = np.array([len(part) for part in points], np.float64)
    weights = counts[counts > 0] if compared.protocol == "pooled" else compared.queries.weights
    return np.mean(each, axis=0), weights
