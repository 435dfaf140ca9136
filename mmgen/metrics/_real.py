"""Real pictures of the same descriptions, in two halves: what drawn ones are compared with, and what that would give.

Pictures of one source (several renderings of one digit) are in one half, so that halves are no more alike than pictures
that nobody has seen are.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.errors import UsageError
from mmgen.metrics._base import relay
from mmgen.metrics._queries import Queries
from mmgen.notation import UNKNOWN
from mmgen.seeding import numpy_generator

if TYPE_CHECKING:
    from mmgen.artifacts import Dataset
    from mmgen.metrics._evaluation import Evaluation

__all__ = ["LEAST", "Compared", "Real", "check_real", "compare_all"]

LEAST = 8
"""Real pictures of a description in each half, at least, for it to be measured by itself."""

_SOURCE = ("source", "source_part")
"""Factors that say which picture an example was rendered from, where the recipe has them."""
_BASIS = 4096
"""Training pictures that principal components are found from."""

Points = list[NDArray[np.float32]]
"""Features [n, F] of each description."""


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
            "fewest_per_query": int(counts[2].min()),
            "features": int(self.drawn[0].shape[1]),
        }


@dataclass(frozen=True)
class _Chosen:
    """Features [N, F] of some pictures, and which of them each query has in each half."""

    features: NDArray[np.float32]
    places: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]


class Real:
    """Real pictures of the part that is asked about.

    Args:
        evaluation: Says which part, and has the judge whose features are taken.
    """

    def __init__(self, evaluation: "Evaluation") -> None:
        self._evaluation = evaluation
        self._chosen: dict[int, _Chosen] = {}
        self._components: tuple[int, NDArray[np.float64], float] | None = None

    def of(self, queries: Queries) -> _Chosen:
        """At most ``settings.draws`` pictures of each query in each half, or :data:`LEAST` if that is more."""
        if queries.dropped not in self._chosen:
            self._chosen[queries.dropped] = self._choose(queries)
        return self._chosen[queries.dropped]

    def _choose(self, queries: Queries) -> _Chosen:
        evaluation = self._evaluation
        settings = evaluation.settings
        rows = evaluation.dataset.split(evaluation.split, settings.part)
        codes = evaluation.attributes_of(settings.part)
        order = numpy_generator(settings.seed, "real pictures").permutation(len(rows))
        rows, codes = rows[order], codes[order]
        half = halves(codes, sources(evaluation.dataset, rows))
        places: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])
        for query in queries.codes:
            given = query != UNKNOWN
            matching = (codes[:, given] == query[given]).all(1)
            for side, found in enumerate(places):
                found.append(np.flatnonzero(matching & (half == side))[: max(LEAST, settings.draws)])
        used = np.unique(np.concatenate([part for side in places for part in side]))
        back = np.zeros(len(rows), np.int64)
        back[used] = np.arange(len(used))
        one, other = ([back[part] for part in side] for side in places)
        return _Chosen(self.features(rows[used]), (one, other))

    def features(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The judge's features [n, F] of rows of the dataset."""
        from mmgen.training.batches import DatasetRows

        evaluation = self._evaluation
        image = evaluation.loaded.image
        assert image is not None
        source = DatasetRows(
            evaluation.dataset, rows, evaluation.loaded.device, images=[image.name], seed=evaluation.settings.seed
        )
        name = evaluation.info.name
        parts = []
        for indices in torch.arange(len(rows)).split(512):
            batch = source.batch(indices)
            told = batch.values[name].masked_fill(~batch.present[name], UNKNOWN)
            parts.append(evaluation.judge.features(batch.values[image.name], told).cpu().numpy())
        # DatasetRows puts rows in increasing order.
        return np.concatenate(parts)[np.argsort(np.argsort(rows))]

    def components(self, most: int) -> tuple[NDArray[np.float64], float]:
        """Leading principal components [F, most] of training pictures, and their share of the variance."""
        if self._components is None or self._components[0] != most:
            evaluation = self._evaluation
            rows = evaluation.dataset.split(evaluation.split, "train")
            chosen = numpy_generator(evaluation.settings.seed, "components").permutation(len(rows))[:_BASIS]
            points = self.features(rows[chosen]).astype(np.float64)
            _, sizes, directions = np.linalg.svd(points - points.mean(0), full_matrices=False)
            share = float((sizes[:most] ** 2).sum() / max((sizes**2).sum(), np.finfo(np.float64).tiny))
            self._components = (most, directions[:most].T, share)
        return self._components[1:]


def sources(dataset: "Dataset", rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number [n] for each of ``rows``, the same for those that were rendered from one picture."""
    known = [dataset.factor(name)[rows] for name in _SOURCE if name in dataset.factor_names]
    if not known:
        return np.arange(len(rows))
    _, number = np.unique(np.stack(known, 1), axis=0, return_inverse=True)
    return number.reshape(-1).astype(np.int64)


def halves(codes: NDArray[np.uint8], source: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 or 1 for each picture [n], the same for one source, and about as many of each description.

    Args:
        codes: [n, A], in random order.
        source: [n].
    """
    _, first, number = np.unique(source, return_index=True, return_inverse=True)
    # Sources in the order of their description, every other one in each half; random among the same description.
    order = np.lexsort((first, *codes[first].T[::-1]))
    half = np.zeros(len(first), np.int64)
    half[order] = np.arange(len(first)) % 2
    return half[number.reshape(-1)]


def check_real(evaluation: "Evaluation", what: str) -> None:
    """Raise a UsageError where drawn pictures cannot be compared with real ones of the same description."""
    if evaluation.loaded.image is None:
        raise UsageError(f"{what} is of a model that draws images; this one does not")
    evaluation.check_queries(what)


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
