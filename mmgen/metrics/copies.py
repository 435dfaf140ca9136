"""Copies: the share of drawn pictures that nearly equal a training picture, and the same of held-out pictures.

References:
    A Non-Parametric Test to Detect Data-Copying in Generative Models (Meehan, Chaudhuri, Dasgupta, 2020),
    arXiv:2004.05675
    Extracting Training Data from Diffusion Models (Carlini et al., 2023), arXiv:2301.13188, Section 5.1
"""

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mmgen.core.progress import map_fractions
from mmgen.evaluation import needs
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.evaluation.training_pictures import (
    Space,
    compare_with_held_out,
    explain_missing_held_out_pictures,
    explain_missing_training_pictures,
)
from mmgen.metrics._base import Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Copies"]


_MOST = 2000
_LEAST = 500
_TWINS = 5.0
"""Percentage of held-out pictures as near as copies, above which a score has a warning."""


def _store_pictures(evaluation: "Evaluation") -> str:
    """Return "" after asking that the pixels of the compared pictures are stored when they are drawn."""

    def count(queries: int) -> int:
        return _picture_count(evaluation, queries)

    evaluation.drawn_pictures.store_pixels(count)
    if evaluation.has_judge:
        evaluation.drawn_pictures.store_features(count)
    return ""


def _picture_count(evaluation: "Evaluation", queries: int) -> int:
    """Return how many pictures of each query are compared: all together 2,000, if --draws allows; at least 500."""
    return max(1, min(-(-_MOST // queries), max(evaluation.settings.draws, -(-_LEAST // queries))))


def _explain_floor(floor: float, held_out: int) -> tuple[str, ...]:
    """Return a warning if a perfect model has many copies, because held-out pictures are few or have twins."""
    if floor <= _TWINS:
        return ()
    if 100 / (held_out + 1) > _TWINS:
        return (f"only {held_out} held-out pictures set the threshold, so a perfect model has {floor:.1f} % copies",)
    return (
        f"{floor:.1f} % of held-out pictures are as near to a training picture as a copy: the data hold pictures "
        "almost twice, and a perfect model has as many copies",
    )


class Copies(Metric):
    r"""Percentage of drawn pictures nearer to a training picture than 99 % of held-out real pictures are.

    .. math:: \frac{1}{n} \sum_i I\left(\frac{d_1(x_i)}{\bar d_{2..50}(x_i)} \le t\right)

    d_k is the Euclidean distance to the k-th nearest source of training pictures; t is the 1 % quantile of the same
    ratio of held-out pictures, at least a quarter of its median. Held-out pictures give the ``ceiling``, what a perfect
    model has: 1 % in data without twins. ``low`` and ``high`` are the ends of the 95 % interval. ``nearer`` is the
    percentage of pairs of a drawn and a held-out picture in which the drawn one has the smaller d_1 (Mann-Whitney; 50 %
    of a perfect model, more for copies and for blurred pictures).

    Words decide: no training picture has the words of a gap, so that none can be copied for them. Where training
    pictures lack some of the descriptions, their own are asked for too, as ``copies of training words``; descriptions
    of which they have none are ``copies of gaps``. ``in_training`` is the percentage of descriptions that they have.

    Protocol ``pixels``: pixels, averaged to at most 16 x 16; ``features``: features of the attribute classifier, where
    there is one. Descriptions are as complete as the data allow unless numbers of attributes are chosen.
    """

    unit = "%"
    better = "lower"
    points = "seen"
    rank = 3
    reads = ("judge", *DESCRIPTIONS)
    columns: ClassVar = {
        "95 % from": "low",
        "to": "high",
        "held-out real": "ceiling",
        "nearer pairs": "nearer",
        "words in training": "in_training",
    }
    protocols: ClassVar = {
        "pixels": "Pictures are compared by their pixels, averaged to at most 16 x 16.",
        "features": "Pictures are compared by the features of the judge.",
    }
    needs = (
        needs.explain_missing_drawings,
        explain_missing_training_pictures,
        explain_missing_held_out_pictures,
        _store_pictures,
    )

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        scores = []
        every: list[tuple[Queries, str, float]] = []
        for queries in evaluation.questions.make_most_complete_queries():
            others, share = evaluation.questions.make_training_queries(queries)
            every.append((queries, "copies" if share else "copies of gaps", share))
            every += [(others, "copies of training words", 100.0)] if others is not None else []
        for done, asked in enumerate(every):
            work = self._score_queries(evaluation, posterior, *asked)
            scores += yield from map_fractions(work, done / len(every), 1 / len(every))
        return scores

    def _score_queries(
        self, evaluation: "Evaluation", posterior: str, queries: Queries, quantity: str, in_training: float
    ) -> Generator[float, None, list[Score]]:
        n, pictures = _picture_count(evaluation, len(queries)), evaluation.drawn_pictures
        scores = []
        if not evaluation.has_further_judge:  # pixels are the same for all judges
            pixels = yield from map_fractions(pictures.compute_pixels(queries, posterior, n), 0.0, 0.6)
            scores.append(self._compare(evaluation, posterior, queries, pixels[:, :n], "pixels"))
        if evaluation.has_judge:
            features = yield from map_fractions(pictures.compute_features(queries, posterior, n), 0.6, 0.3)
            scores.append(self._compare(evaluation, posterior, queries, features[:, :n], "features"))
        return [replace(one, quantity=quantity, details={**one.details, "in_training": in_training}) for one in scores]

    def _compare(
        self, evaluation: "Evaluation", posterior: str, queries: Queries, points: "np.ndarray", space: Space
    ) -> Score:
        training = evaluation.training_pictures
        n = points.shape[1]
        drawn, held_out = training.find_nearest(points.reshape(-1, points.shape[2]), space)
        descriptions, weights = np.repeat(np.arange(len(queries)), n), np.repeat(queries.weights, n)
        share = compare_with_held_out(
            drawn, descriptions, weights, held_out, training.held_out_sources, evaluation.settings.seed
        )
        judge = evaluation.judge if space == "features" else None
        return self.score(
            evaluation,
            share.value,
            share.stderr,
            len(drawn.rows),
            posterior=posterior,
            given=queries.given_count,
            protocol=space,
            warnings=_explain_floor(share.floor, len(held_out.rows)),
            ids={"judge": judge.content_id} if judge else {},
            details={
                "low": share.low,
                "high": share.high,
                "ceiling": share.floor,
                "ceiling_stderr": share.floor_stderr,
                "nearer": share.nearer,
                "nearer_stderr": share.nearer_stderr,
                "threshold": share.threshold,
                "held_out": len(held_out.rows),
                "training": len(training.rows),
                "queries": len(queries),
                "images_per_query": n,
                "pixels": evaluation.drawn_pictures.pixels,
            },
        )
