"""Drawn pictures and real ones of the same descriptions, side by side."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.core.progress import relay
from mmgen.evaluation import needs
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.real import LEAST, Points

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["TOO_FEW", "Compared", "compare_pictures", "comparable_pictures"]

TOO_FEW = f"no description of this part has {LEAST} real pictures in each of two halves, as comparing takes"
"""The message where nothing could be compared."""


@dataclass(frozen=True)
class Compared:
    """Drawn pictures and real ones of the same descriptions, as the classifier's features.

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
    drawn: Points
    left_out: int

    @property
    def pairs(self) -> list[tuple[Points, Points]]:
        """Return sets of drawn pictures, each with its reference set of real ones."""
        return [(self.drawn, half) for half in self.halves[: 2 if self.protocol == "description" else 1]]

    @property
    def ceiling_pairs(self) -> list[tuple[Points, Points]]:
        """Return pairs of sets of real pictures, which give the best score that a model can reach."""
        one, other = self.halves
        return [(other, one), (one, other)] if self.protocol == "description" else [(other, one)]

    @property
    def n(self) -> int:
        """Return the number of drawn pictures."""
        return sum(map(len, self.drawn))

    def about(self) -> dict[str, int | float]:
        """Return numbers of pictures for every score."""
        counts = np.array([[len(part) for part in points] for points in (*self.halves, self.drawn)])
        return {
            "queries": len(self.queries),
            "queries_left_out": self.left_out,
            "real": int(counts[:2].sum()),
            "images_per_query": float(counts[2].mean()),
            "features": int(self.drawn[0].shape[1]),
        }


def comparable_pictures(evaluation: "Evaluation") -> str:
    """Need pictures that can be compared with real ones of the same description.

    Features of the compared pictures are kept from now on, whichever metric has them drawn.
    """
    missing = needs.drawn_pictures(evaluation) or needs.spelled_descriptions(evaluation)
    if not missing:
        evaluation.draws.store_features(max(LEAST, evaluation.settings.draws))
    return missing


def _compare(evaluation: "Evaluation", posterior: str, dropped: int) -> Generator[float, None, list[Compared]]:
    """Compare drawn and real pictures of all descriptions with ``dropped`` attributes left out."""
    queries = evaluation.questions.of(dropped)
    chosen = evaluation.real.of(queries)
    counts = np.array([[len(part) for part in side] for side in chosen.places])  # [2, Q]
    n = counts.min(0)
    alone = np.flatnonzero(n >= LEAST)
    together = np.arange(len(queries)) if not dropped and counts.sum(1).min() >= LEAST else np.zeros(0, np.int64)
    most = int(max(n[alone].max(initial=0), counts[1][together].max(initial=0)))
    if not most:
        return []
    drawn = yield from evaluation.draws.features(queries, posterior, most)

    def real(side: int, query: int, number: int) -> NDArray[np.float32]:
        return chosen.features[chosen.places[side][query][:number]]

    found = []
    if len(alone):
        one, other = ([real(side, int(query), int(n[query])) for query in alone] for side in (0, 1))
        pictures = [drawn[query, : n[query]] for query in alone]
        found.append(Compared("description", queries.take(alone), (one, other), pictures, len(queries) - len(alone)))
    if len(together):
        one, other = ([real(side, int(query), int(counts[side, query])) for query in together] for side in (0, 1))
        pictures = [drawn[query, : counts[1, query]] for query in together]
        found.append(Compared("pooled", queries, (one, other), pictures, 0))
    return found


def compare_pictures(evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Compared]]:
    """Compare drawn and real pictures for every number of attributes left out."""
    found: list[Compared] = []
    most = len(evaluation.info.names) - len(evaluation.questions.hints)
    numbers = [number for number in evaluation.questions.dropped if number <= most]
    for done, number in enumerate(numbers):
        work = _compare(evaluation, posterior, number)
        found += yield from relay(work, done / len(numbers), 1 / len(numbers))
    return found
