"""FID: Fréchet distance of drawn pictures to real pictures of the same description.

References:
    GANs Trained by a Two Time-Scale Update Rule Converge to a Local Nash Equilibrium (Heusel, Ramsauer, Unterthiner,
    Nessler, Hochreiter, 2017), arXiv:1706.08500
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.evaluation import needs
from mmgen.evaluation.distances import (
    Distance,
    distance_within_descriptions,
    extrapolate_distance,
    jackknife_error,
    pooled_distance,
)
from mmgen.evaluation.real import TOO_FEW, PictureComparison, Points, compare_pictures, explain_incomparable_pictures
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.metrics._base import Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Fid"]


_MOST = 256
"""Largest number of features whose covariance is estimated; more are reduced to principal components."""

Doubles = list[NDArray[np.float64]]


class Fid(Metric):
    r"""Squared Fréchet distance between drawn and real pictures, as Gaussians in the classifier's features.

    Protocol ``description``: inside descriptions, the mean squared distance of the means plus the distance of the mean
    covariances; ``pooled``: of all pictures together. Real pictures instead of drawn ones give the ``ceiling``, the
    lowest distance to expect of that many; ``extrapolated`` is the distance for infinitely many.
    """

    unit = "squared distance"
    better = "lower"
    points = "seen"
    rank = 3
    reads = DESCRIPTIONS
    unmeasured = TOO_FEW
    columns: ClassVar = {
        "real halves": "ceiling",
        "for all pictures": "extrapolated",
        "spread of real": "real_spread",
        "queries": "queries",
    }

    needs = (needs.explain_missing_classifier, explain_incomparable_pictures)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        found = yield from compare_pictures(evaluation, posterior)
        return [self._score(evaluation, posterior, comparison) for comparison in found]

    def _score(self, evaluation: "Evaluation", posterior: str, comparison: PictureComparison) -> Score:
        project, share, size = _make_projection(evaluation, comparison)
        one, other, drawn = (project(points) for points in (*comparison.halves, comparison.drawn_points))
        both = comparison.protocol == "description"
        found = _average_distance(comparison, [(drawn, half) for half in ((one, other) if both else (one,))])
        real = _average_distance(comparison, [(other, one)])
        return self.score(
            evaluation,
            found.value,
            found.stderr,
            comparison.n,
            quantity="squared Fréchet distance",
            posterior=posterior,
            given=comparison.queries.given_count,
            protocol=comparison.protocol,
            details={
                **comparison.picture_counts(),
                "ceiling": real.value,
                "ceiling_stderr": real.stderr,
                "extrapolated": found.extrapolated,
                "extrapolated_stderr": found.extrapolated_stderr,
                "ceiling_extrapolated": real.extrapolated,
                "ceiling_extrapolated_stderr": real.extrapolated_stderr,
                "real_spread": _total_variance(comparison, one),
                "components": size,
                "variance_kept": share,
                "pixels": evaluation.drawn_pictures.pixels,
            },
        )


@dataclass(frozen=True)
class _Estimate:
    """Fréchet distance at the number of pictures at hand and extrapolated to infinitely many, with standard errors."""

    value: float
    stderr: float | None
    extrapolated: float
    extrapolated_stderr: float | None


def _make_projection(
    evaluation: "Evaluation", comparison: PictureComparison
) -> tuple[Callable[[Points], Doubles], float, int]:
    """Return a function that projects features to ``_MOST`` numbers, its share of variance, and their number."""
    size = comparison.drawn_points[0].shape[1]
    if size <= _MOST:
        return lambda points: [part.astype(np.float64) for part in points], 1.0, size
    directions, share = evaluation.real_pictures.principal_components(_MOST)
    return lambda points: [part @ directions for part in points], share, directions.shape[1]


def _average_distance(comparison: PictureComparison, pairs: list[tuple[Doubles, Doubles]]) -> _Estimate:
    """Average the Fréchet distances of several pairs of picture sets, and extrapolate to infinitely many pictures."""
    wholes, limits, counts = [], [], set()
    for first, second in pairs:
        whole = _frechet_distance(comparison, first, second)
        parts = [
            _frechet_distance(comparison, *(_take_half(side, start) for side in (first, second))) for start in (0, 1)
        ]
        wholes.append(whole.distance_without)
        limits.append(extrapolate_distance(whole, parts))
        counts.add(whole.groups)
    (groups,) = counts  # all pairs are of the same descriptions

    def average(functions: list[Callable[[int | None], float]]) -> Callable[[int | None], float]:
        return lambda left_out: float(np.mean([function(left_out) for function in functions]))

    distance, limit = average(wholes), average(limits)
    return _Estimate(distance(None), jackknife_error(distance, groups), limit(None), jackknife_error(limit, groups))


def _frechet_distance(comparison: PictureComparison, first: Doubles, second: Doubles) -> Distance:
    """Return the Fréchet distance of two picture sets: of all together, or averaged over descriptions."""
    return (
        pooled_distance(first, second)
        if comparison.protocol == "pooled"
        else distance_within_descriptions(first, second, comparison.queries.weights)
    )


def _take_half(points: Doubles, start: int) -> Doubles:
    """Return every second picture of each description; ``start`` 0 or 1 chooses the half."""
    return [part[(start + place) % 2 :: 2] for place, part in enumerate(points)]


def _total_variance(comparison: PictureComparison, real: Doubles) -> float:
    """Return the total variance of the real pictures' features, the scale against which distances are read."""
    if comparison.protocol == "pooled":
        return float(np.concatenate(real).var(0, ddof=1).sum())
    each = [part.var(0, ddof=1).sum() for part in real]
    return float(np.average(each, weights=comparison.queries.weights))
