"""Precision: how much of what is drawn lies where real pictures of the same description do.

References:
    Improved Precision and Recall Metric for Assessing Generative Models (Kynkäänniemi, Karras, Laine, Lehtinen, Aila,
    2019), arXiv:1904.06991
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

from mmgen.evaluation.compared import TOO_FEW, check_real
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.metrics._base import Metric, Score
from mmgen.metrics._overlap import overlap_scores

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["Precision"]


class Precision(Metric):
    r"""Share of drawn pictures that lie in a ball around a real one, in the judge's features.

    .. math:: \frac{1}{n} \sum_i I(\exists j: \|d_i - r_j\| \le \|r_j - NN_k(r_j)\|) \qquad (k = 3)

    Protocol ``description``: real pictures of the same description only, mean over descriptions; ``pooled``: all
    descriptions together. Real pictures instead of drawn ones, of another half, give the ceiling.
    """

    unit = "%"
    better = "higher"
    judged = True
    scores_points = True
    rank = 3
    reads = DESCRIPTIONS
    unmeasured = TOO_FEW
    columns: ClassVar = {"real halves": "ceiling", "queries": "queries"}

    def check(self, evaluation: "Evaluation") -> None:
        check_real(evaluation, "precision")

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        return (yield from overlap_scores("precision", evaluation, posterior, of_real=False))
