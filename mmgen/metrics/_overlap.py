"""The base of precision and recall by nearest neighbours."""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.evaluation import needs
from mmgen.evaluation.distances import are_inside_balls
from mmgen.evaluation.queries import weighted_mean
from mmgen.evaluation.real import TOO_FEW, PictureComparison, Points, compare_pictures, explain_incomparable_pictures
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.metrics._base import Metric, Score
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation


Floats = NDArray[np.float64]


class Overlap(Metric):
    """Base of precision and recall: the percentage of real or drawn pictures that resemble pictures of the other set.

    Protocol ``description``: real pictures of the same description only, mean over descriptions; ``pooled``: all
    descriptions together. Real pictures instead of drawn ones, from another half, give the ceiling.
    """

    unit = "%"
    better = "higher"
    points = "seen"
    rank = 3
    reads = DESCRIPTIONS
    unmeasured = TOO_FEW
    columns: ClassVar = {"real halves": "ceiling", "queries": "queries"}
    needs = (needs.explain_missing_classifier, explain_incomparable_pictures)
    of_real: ClassVar[bool]
    """True for the share of real pictures among drawn ones (recall), False for drawn among real ones (precision)."""

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        comparisons = yield from compare_pictures(evaluation, posterior)
        return [self._score(evaluation, posterior, comparison) for comparison in comparisons]

    def _score(self, evaluation: "Evaluation", posterior: str, comparison: PictureComparison) -> Score:
        seed = evaluation.settings.seed
        values, weights = _overlap_percentages(comparison, comparison.pairs, self.of_real)
        real, _ = _overlap_percentages(comparison, comparison.ceiling_pairs, self.of_real)
        mean, ceiling = weighted_mean(values, weights, seed), weighted_mean(real, weights, seed)
        shortfall = weighted_mean(real - values, weights, seed)

        return self.score(
            evaluation,
            mean.value,
            share_error(mean.value, mean.stderr, comparison.n, len(comparison.queries)),
            comparison.n,
            posterior=posterior,
            given=comparison.queries.given_count,
            protocol=comparison.protocol,
            details={
                **comparison.picture_counts(),
                "ceiling": ceiling.value,
                "ceiling_stderr": share_error(ceiling.value, ceiling.stderr, comparison.n, len(comparison.queries)),
                "below_ceiling": shortfall.value,
                "below_ceiling_stderr": shortfall.stderr,
                "splits_sd": mean.splits_sd,
                "pixels": evaluation.drawn_pictures.pixels,
            },
        )


def _overlap_percentages(
    comparison: PictureComparison, pairs: list[tuple[Points, Points]], of_real: bool
) -> tuple[Floats, Floats]:
    """Return for each description the percentage of pictures that resemble the other set, and its weight."""
    each = []
    for candidates, references in pairs:
        points, others = (references, candidates) if of_real else (candidates, references)
        if comparison.protocol == "pooled":
            is_inside = np.split(
                are_inside_balls(np.concatenate(points), np.concatenate(others)), np.cumsum(list(map(len, points)))
            )
            each.append([100.0 * part.mean() for part in is_inside if len(part)])
        else:
            each.append([100.0 * are_inside_balls(a, b).mean() for a, b in zip(points, others, strict=True)])
    counts = np.array([len(part) for part in points], np.float64)
    weights = counts[counts > 0] if comparison.protocol == "pooled" else comparison.queries.weights
    return np.mean(each, axis=0), weights
