"""Drawn pictures and real ones of the same descriptions, side by side."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.core.progress import map_fractions
from mmgen.evaluation import needs
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.real import LEAST, Points

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["TOO_FEW", "PictureComparison", "compare_pictures", "explain_incomparable_pictures"]

TOO_FEW = f"no description of this part has {LEAST} real pictures in each of two halves, expected one at least"
"""The message where nothing could be compared."""


@dataclass(frozen=True)
class PictureComparison:
    """Features of drawn pictures beside those of real pictures with the same descriptions, by an attribute classifier.

    Attributes:
        protocol: ``description``: each description by itself, n pictures of each kind, each half the reference in
            turn; ``pooled``: all descriptions together, as many drawn as in the second half, the first the reference.
        queries: The descriptions.
        halves: Real pictures, in two halves.
        drawn: Drawn pictures.
        left_out: Descriptions that had too few real pictures.
    """

    protocol: str
    queries: Queries
    halves: tuple[Points, Points]
    drawn_points: Points
    left_out: int

    @property
    def pairs(self) -> list[tuple[Points, Points]]:
        """Return pairs of the features of drawn pictures and those of the real pictures to compare with."""
        return [(self.drawn_points, half) for half in self.halves[: 2 if self.protocol == "description" else 1]]

    @property
    def ceiling_pairs(self) -> list[tuple[Points, Points]]:
        """Return pairs of the features of two halves of the real pictures, which score as a perfect model would."""
        one, other = self.halves
        return [(other, one), (one, other)] if self.protocol == "description" else [(other, one)]

    @property
    def n(self) -> int:
        """Return the number of drawn pictures of all descriptions."""
        return sum(map(len, self.drawn_points))

    def picture_counts(self) -> dict[str, int | float]:
        """Return the numbers of descriptions, pictures and features, as details of a score."""
        counts = np.array([[len(part) for part in points] for points in (*self.halves, self.drawn_points)])
        return {
            "queries": len(self.queries),
            "queries_left_out": self.left_out,
            "real": int(counts[:2].sum()),
            "images_per_query": float(counts[2].mean()),
            "features": int(self.drawn_points[0].shape[1]),
        }


def explain_incomparable_pictures(evaluation: "Evaluation") -> str:
    """Return the reason why drawn pictures cannot be compared with real ones of the same description; "" if they can.

    From then on the classifier's features of all drawn pictures are stored.
    """
    missing = needs.explain_missing_drawings(evaluation) or needs.explain_unspelled_descriptions(evaluation)
    if not missing:
        evaluation.drawn_pictures.store_features(lambda _: max(LEAST, evaluation.settings.draws))
    return missing


def _compare_dropped(
    evaluation: "Evaluation", posterior: str, dropped: int
) -> Generator[float, None, list[PictureComparison]]:
    """Draw pictures of all descriptions without ``dropped`` of their attributes, beside real pictures."""
    queries = evaluation.questions.make_queries(dropped)
    chosen = evaluation.real_pictures.pictures_of(queries)
    counts = np.array([[len(part) for part in side] for side in chosen.places])  # [2, Q]
    n = counts.min(0)
    alone = np.flatnonzero(n >= LEAST)
    together = np.arange(len(queries)) if not dropped and counts.sum(1).min() >= LEAST else np.zeros(0, np.int64)
    most = int(max(n[alone].max(initial=0), counts[1][together].max(initial=0)))
    if not most:
        return []
    drawn = yield from evaluation.drawn_pictures.compute_features(queries, posterior, most)

    def real_features(side: int, query: int, number: int) -> NDArray[np.float32]:
        return chosen.features[chosen.places[side][query][:number]]

    comparisons = []
    if len(alone):
        one, other = ([real_features(side, int(query), int(n[query])) for query in alone] for side in (0, 1))
        pictures = [drawn[query, : n[query]] for query in alone]
        comparisons.append(
            PictureComparison("description", queries.select(alone), (one, other), pictures, len(queries) - len(alone))
        )
    if len(together):
        one, other = (
            [real_features(side, int(query), int(counts[side, query])) for query in together] for side in (0, 1)
        )
        pictures = [drawn[query, : counts[1, query]] for query in together]
        comparisons.append(PictureComparison("pooled", queries, (one, other), pictures, 0))
    return comparisons


def compare_pictures(evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[PictureComparison]]:
    """Draw pictures of descriptions, and return their features beside those of real pictures."""
    comparisons: list[PictureComparison] = []
    limit = len(evaluation.attributes.names) - len(evaluation.questions.hints)
    numbers = [number for number in evaluation.questions.dropped if number <= limit]
    for done, number in enumerate(numbers):
        work = _compare_dropped(evaluation, posterior, number)
        comparisons += yield from map_fractions(work, done / len(numbers), 1 / len(numbers))
    return comparisons
