"""Drawn pictures and real ones of the same descriptions, side by side."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import UsageError
from mmgen.core.progress import relay
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.real import LEAST, Points

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["TOO_FEW", "Compared", "check_real", "compare_all"]

TOO_FEW = f"no description of this part has {LEAST} real pictures in each of two halves, as comparing takes"
"""What is said where nothing could be compared."""


@dataclass(frozen=True)
class Compared:
    """Drawn pictures and real ones of the same descriptions, as the judge's features.

    Attributes:
        protocol: ``description``: each description by itself, n pictures of each kind, both halves the reference in
            turn; ``pooled``: all descriptions together, as many drawn as the second half has, the first the reference.
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
        """Drawn pictures, each with its reference."""
        return [(self.drawn, half) for half in self.halves[: 2 if self.protocol == "description" else 1]]

    @property
    def ceiling_pairs(self) -> list[tuple[Points, Points]]:
        """Real pictures instead of drawn ones, each with its reference."""
        one, other = self.halves
        return [(other, one), (one, other)] if self.protocol == "description" else [(other, one)]

    @property
    def n(self) -> int:
        """Number of drawn pictures."""
        return sum(map(len, self.drawn))

    def about(self) -> dict[str, int | float]:
        """What every score tells of the pictures."""
        counts = np.array([[len(part) for part in points] for points in (*self.halves, self.drawn)])
        return {
            "queries": len(self.queries),
            "queries_left_out": self.left_out,
            "real": int(counts[:2].sum()),
            "images_per_query": float(counts[2].mean()),
            "features": int(self.drawn[0].shape[1]),
        }


def check_real(evaluation: "Evaluation", what: str) -> None:
    """Raise a UsageError where drawn pictures cannot be compared with real ones of the same description.

    Else features of as many drawn pictures as are compared are kept, whichever metric has them drawn.
    """
    if evaluation.loaded.observation is None:
        raise UsageError(f"{what} is of a model that draws something besides words; this one does not")
    evaluation.check_queries(what)
    evaluation.draws.keep_features(max(LEAST, evaluation.settings.draws))


def _compare(evaluation: "Evaluation", posterior: str, dropped: int) -> Generator[float, None, list[Compared]]:
    """Drawn and real pictures of all descriptions with ``dropped`` attributes left out.

    Each description by itself, as far as there are enough real pictures; and all together where each picture has one
    description, with nothing left out.
    """
    queries = evaluation.queries(dropped)
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


def compare_all(evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Compared]]:
    """Drawn and real pictures, for every number of attributes that is to be left out."""
    found: list[Compared] = []
    most = len(evaluation.info.names) - len(evaluation.told)
    numbers = [number for number in evaluation.dropped if number <= most]
    for done, number in enumerate(numbers):
        work = _compare(evaluation, posterior, number)
        found += yield from relay(work, done / len(numbers), 1 / len(numbers))
    return found
