"""Recall: how much of the real pictures of a description lies where what is drawn does.

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

__all__ = ["Recall"]


class Recall(Metric):
    r"""Share of real pictures that lie in a ball around a drawn one, in the judge's features.

    .. math:: \frac{1}{n} \sum_i I(\exists j: \|r_i - d_j\| \le \|d_j - NN_k(d_j)\|) \qquad (k = 3)

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
        check_real(evaluation, "recall")

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        return (yield from overlap_scores("recall", evaluation, posterior, of_real=True))
