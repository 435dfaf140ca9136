"""Agreement of pictures with descriptions, shared by correctness and compositionality."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.evaluation.queries import Queries, weighted_mean
from mmgen.metrics._base import Score
from mmgen.results.score import Points
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["agreement", "correctness_scores"]


def agreement(asked: NDArray[np.uint8], judged: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Correctness of each query [Q] (VE Section 3): the mean over its images and given attributes of [judge = asked].

    Args:
        asked: [Q, A], ``UNKNOWN`` where nothing was asked; each query gives at least one attribute.
        judged: [Q, n, A].

    Example:
        >>> import numpy as np
        >>> asked = np.array([[3, 255]], np.uint8)
        >>> agreement(asked, np.array([[[3, 0], [3, 1], [3, 0], [5, 1]]], np.uint8))
        array([0.75])
    """
    given = asked != UNKNOWN
    right = (judged == asked[:, None]) & given[:, None]
    fraction: NDArray[np.float64] = right.sum((1, 2)) / (judged.shape[1] * given.sum(1))
    return fraction


def correctness_scores(
    metric: str, evaluation: "Evaluation", posterior: str, queries: Queries, judged: NDArray[np.uint8]
) -> list[Score]:
    """Scores of judged pictures [Q, n, A] of ``queries``, in percent; standard errors are clustered by query.

    Protocol ``exact`` is over the words that the judge says. Where it is told some there is also ``paper``, over all
    words, the told ones among them (CK 5.4; they always match). Of captions in free words it is ``free-captions``, over
    the attributes that are known of their examples: queries of one caption have the same pictures, which count once.
    """
    if queries.tokens is not None:
        return [_score(metric, evaluation, posterior, queries, judged, "free-captions", evaluation.told)]
    exact = _score(metric, evaluation, posterior, queries, judged, "exact", evaluation.told)
    if not evaluation.told:
        return [exact]
    return [_score(metric, evaluation, posterior, queries, judged, "paper", ()), exact]


def _of_captions(values: NDArray[np.float64], queries: Queries) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values and weights of the independent units: queries of one caption share its pictures and are one unit."""
    if queries.tokens is None:
        return values, queries.weights
    _, of = np.unique(queries.tokens, axis=0, return_inverse=True)
    weights = np.bincount(of.ravel(), queries.weights).astype(np.float64)
    return np.bincount(of.ravel(), queries.weights * values) / weights, weights


def _score(
    metric: str,
    evaluation: "Evaluation",
    posterior: str,
    queries: Queries,
    judged: NDArray[np.uint8],
    protocol: str,
    left_out: tuple[int, ...],
) -> Score:
    seed = evaluation.settings.seed
    codes = queries.codes.copy()
    codes[:, left_out] = UNKNOWN
    values, weights = _of_captions(100 * agreement(codes, judged), queries)
    mean = weighted_mean(values, weights, seed)
    by_attribute = {}
    for index, name in enumerate(evaluation.info.names):
        asked = codes[:, index] != UNKNOWN
        if asked.any():
            right = (judged[asked, :, index] == queries.codes[asked, None, index]).mean(1)
            by_attribute[name] = 100 * float(np.average(right, weights=queries.weights[asked]))
    pictures = len(values) * judged.shape[1]
    return Score(
        metric=metric,
        quantity="correctness",
        value=mean.value,
        stderr=None if mean.stderr is None else share_error(mean.value, mean.stderr, pictures),
        unit="%",
        better="higher",
        n=pictures,
        posterior=posterior,
        given=queries.given_count,
        protocol=protocol,
        judge_accuracy=evaluation.judge.accuracy or None,
        ids=evaluation.judged_ids,
        by_attribute=by_attribute,
        points=Points.of(values, weights),
        details={
            "queries": len(values),
            "images_per_query": judged.shape[1],
            "splits_sd": mean.splits_sd,
            "pixels": "sampled" if evaluation.draws.sampled else "mean",
        },
    )
