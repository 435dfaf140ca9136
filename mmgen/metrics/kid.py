"""KID: kernel distance of drawn pictures to real pictures of the same description.

References:
    Demystifying MMD GANs (Bińkowski, Sutherland, Arbel, Gretton, 2018), arXiv:1801.01401
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mmgen.evaluation import needs
from mmgen.evaluation.distances import jackknife_error, kernel_distance, pooled_kernel_distance
from mmgen.evaluation.queries import weighted_mean
from mmgen.evaluation.real import TOO_FEW, PictureComparison, Points, compare_pictures, explain_incomparable_pictures
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.metrics._base import Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Kid"]


class Kid(Metric):
    r"""Squared kernel distance (MMD) of drawn and real pictures, in the classifier's features.

    .. math:: E[k(d, d')] + E[k(r, r')] - 2 E[k(d, r)], \quad k(x, y) = (x \cdot y / F + 1)^3

    The estimate is unbiased: 0 is expected of a perfect model for any number of pictures, and values may be below 0.
    Protocol ``description``: inside descriptions, mean over them; ``pooled``: of all pictures together. Real pictures
    instead of drawn ones give the ``ceiling``.
    """

    unit = "squared distance"
    better = "lower"
    points = "seen"
    rank = 3
    reads = DESCRIPTIONS
    unmeasured = TOO_FEW
    columns: ClassVar = {"real halves": "ceiling", "queries": "queries"}

    needs = (needs.explain_missing_classifier, explain_incomparable_pictures)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        comparisons = yield from compare_pictures(evaluation, posterior)
        return [self._score(evaluation, posterior, comparison) for comparison in comparisons]

    def _score(self, evaluation: "Evaluation", posterior: str, comparison: PictureComparison) -> Score:
        seed = evaluation.settings.seed
        value, stderr = _average_distance(comparison, comparison.pairs, seed)
        ceiling, ceiling_stderr = _average_distance(comparison, comparison.ceiling_pairs[:1], seed)
        return self.score(
            evaluation,
            value,
            stderr,
            comparison.n,
            quantity="squared kernel distance",
            posterior=posterior,
            given=comparison.queries.given_count,
            protocol=comparison.protocol,
            details={
                **comparison.picture_counts(),
                "ceiling": ceiling,
                "ceiling_stderr": ceiling_stderr,
                "pixels": evaluation.drawn_pictures.pixels,
            },
        )


def _average_distance(
    comparison: PictureComparison, pairs: list[tuple[Points, Points]], seed: int
) -> tuple[float, float | None]:
    """Return the mean distance of pairs of sets of pictures, and its standard error over descriptions."""
    if comparison.protocol == "pooled":
        functions = [pooled_kernel_distance(*pair) for pair in pairs]

        def mean(left_out: int | None) -> float:
            return float(np.mean([distance(left_out) for distance, _ in functions]))

        return mean(None), jackknife_error(mean, functions[0][1])
    each = [[kernel_distance(a, b) for a, b in zip(*pair, strict=True)] for pair in pairs]
    result = weighted_mean(np.mean(each, axis=0), comparison.queries.weights, seed)
    return result.value, result.stderr
