r"""Real pictures as a reference for drawn ones: in two halves, side by side, and counts beside a known distribution.

A divergence from :math:`n` draws is too large: the second-order Taylor expansion of :math:`JS(p, \hat q)` around
:math:`q` gives the bias

.. math:: \frac{1}{4 n} \sum_v \frac{p_v (1 - q_v)}{p_v + q_v} \text{ nats},

0.23 bits for 10 draws of a perfect 10-way attribute, and for a perfect model it stays above the standard error at every
:math:`n`, since both fall as :math:`1/n`. The jackknife removes this term; what is left falls as :math:`1/n^2`.

References:
    Bias reduction by the jackknife (Quenouille, 1956), Notes on bias in estimation, Biometrika 43;
    Estimation of entropy and mutual information (Paninski, 2003), Neural Computation 15, Section 3

Comparing the halves with each other gives the best score to expect. Pictures of one source (several renderings of one
digit) are in one half, so that the halves are independent.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import map_fractions
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation import needs
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.settings import EvaluationSettings
from mmgen.evaluation.training_pictures import read_sources

if TYPE_CHECKING:
    from mmgen.artifacts import Dataset
    from mmgen.classifier import Classifier
    from mmgen.evaluation import Evaluation
    from mmgen.modalities.attributes import AttributesDescription


Floats = NDArray[np.float64]
_SIMULATIONS = 64


def jensen_shannon(p: Floats, q: Floats, base: float = 2.0) -> Floats:
    """Compute the Jensen-Shannon divergence of p and q over the last axis: 0 to 1 in base 2.

    Example:
        >>> float(jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])))
        1.0
    """
    middle = (p + q) / 2

    def relative_entropy(a: Floats) -> Floats:
        ratio = np.divide(a, middle, out=np.ones_like(middle), where=a > 0)
        return (a * np.log(ratio)).sum(-1)

    p, q = np.broadcast_arrays(p, q)
    divergence: Floats = 0.5 * (relative_entropy(p) + relative_entropy(q)) / np.log(base)
    return divergence


def jackknife_divergence(p: Floats, counts: NDArray[np.int64]) -> Floats:
    """Estimate JS(p, q) from ``counts`` [..., V] of draws of q; the jackknife corrects the bias of few draws.

    May be slightly negative: clipping it at 0 would bring the bias back.
    """
    total = counts.sum(-1)
    whole = jensen_shannon(p, counts / total[..., None])
    left_out = np.zeros_like(whole)
    for value in range(counts.shape[-1]):
        fewer = counts.astype(np.float64)
        fewer[..., value] = np.maximum(fewer[..., value] - 1, 0)
        # All draws of one value give the same leave-one-out estimate: V of them instead of n.
        part = jensen_shannon(p, fewer / np.maximum(fewer.sum(-1), 1.0)[..., None])
        left_out += counts[..., value] / total * part
    corrected: Floats = total * whole - (total - 1) * left_out
    return corrected


def remaining_bias(p: Floats, counts: NDArray[np.int64], generator: np.random.Generator) -> Floats:
    """Estimate the bias [...] of :func:`jackknife_divergence` by simulating draws of a q near the counts.

    The q of the simulation is the observed frequency shrunk towards p by half a count per value, so that values that
    happened not to be drawn are not taken for impossible.
    """
    total = counts.sum(-1)
    size = counts.shape[-1]
    q = (counts + 0.5 * size * p) / (total + 0.5 * size)[..., None]
    q = q / q.sum(-1, keepdims=True)
    truth = jensen_shannon(p, q)
    simulated = generator.multinomial(total, q, size=(_SIMULATIONS, *total.shape))
    bias: Floats = jackknife_divergence(p, simulated).mean(0) - truth
    return bias


LEAST = 8
"""Real pictures of a description in each half, at least, for it to be measured by itself."""

_READ = 2000
"""Real pictures that the classifier reads, at most."""
_BASIS = 4096
"""Training pictures that principal components are found from."""

Points = list[NDArray[np.float32]]
"""Features [n, F] of each description."""


@dataclass(frozen=True)
class _ReferencePictures:
    """Features [N, F] of real pictures, and the positions of each query's pictures among them."""

    features: NDArray[np.float32]
    places: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]


class RealPictures:
    """Real pictures of the evaluated part, divided into two halves, with which drawn pictures are compared.

    Args:
        dataset: An open dataset.
        split: The split scheme.
        settings: Part of the split, number of pictures, and seed.
        judge: Attribute classifier whose features are compared.
        image: The image modality.
        info: The attributes that describe them.
    """

    def __init__(
        self,
        dataset: "Dataset",
        split: str,
        settings: EvaluationSettings,
        judge: "Classifier",
        image: str,
        info: "AttributesDescription",
    ) -> None:
        self._dataset, self._split, self._settings = dataset, split, settings
        self._judge, self._image, self._info = judge, image, info
        self._chosen: dict[int, _ReferencePictures] = {}
        self._components: tuple[int, NDArray[np.float64], float] | None = None

    def pictures_of(self, queries: Queries) -> _ReferencePictures:
        """Return features of real pictures of each query: in each half at most ``settings.draws`` of them."""
        if queries.dropped not in self._chosen:
            self._chosen[queries.dropped] = self._choose_pictures(queries)
        return self._chosen[queries.dropped]

    def _choose_pictures(self, queries: Queries) -> _ReferencePictures:
        settings = self._settings
        rows = self._dataset.split(self._split, settings.part)
        codes = self._dataset.read_attributes(self._info.name, rows)
        order = numpy_generator(settings.seed, "real pictures").permutation(len(rows))
        rows, codes = rows[order], codes[order]
        sources = read_sources(self._dataset, rows)
        places: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])
        given_sources = 0
        for query in queries.codes:
            given = query != UNKNOWN
            matching = np.flatnonzero((codes[:, given] == query[given]).all(1))
            half = (assign_halves(sources[matching]) + given_sources) % 2  # of single pictures too, every other one
            given_sources += len(np.unique(sources[matching]))
            for side, found in enumerate(places):
                found.append(matching[half == side][: max(LEAST, settings.draws)])
        used = np.unique(np.concatenate([part for side in places for part in side]))
        back = np.zeros(len(rows), np.int64)
        back[used] = np.arange(len(used))
        one, other = ([back[part] for part in side] for side in places)
        return _ReferencePictures(self.compute_features(rows[used]), (one, other))

    def compute_features(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Compute the classifier's features [n, F] of the images in ``rows`` of the dataset."""
        return self._judge_images(self._judge.features, rows)

    @cached_property
    def read_rows(self) -> NDArray[np.int64]:
        """The rows of at most 2,000 real pictures that the classifier reads."""
        rows = self._dataset.split(self._split, self._settings.part)
        return np.sort(numpy_generator(self._settings.seed, "real pictures").permutation(rows)[:_READ])

    @cached_property
    def predicted(self) -> NDArray[np.uint8]:
        """The attributes [n, A] that the classifier predicts from the images in :attr:`read_rows`."""
        predict, precision = self._judge.predict, self._settings.precision
        return self._judge_images(lambda images, hints: predict(images, hints, precision), self.read_rows)

    @cached_property
    def confidences(self) -> NDArray[np.float32]:
        """The probability [n, A] of what is predicted, by the classifier."""
        return self._judge_images(self._judge.confidence, self.read_rows)

    def _judge_images(self, network: Callable[[Tensor, Tensor], Tensor], rows: NDArray[np.int64]) -> NDArray[Any]:
        from mmgen.training.batches import DatasetRows

        seed = self._settings.seed
        source = DatasetRows(self._dataset, rows, self._judge.device, modalities=[self._image], seed=seed)
        name = self._info.name
        parts = []
        for indices in torch.arange(len(rows)).split(512):
            batch = source.batch(indices)
            hints = batch.values[name].masked_fill(~batch.present[name], UNKNOWN)
            parts.append(network(batch.values[self._image], hints).cpu().numpy())
        # DatasetRows puts rows in increasing order.
        return np.concatenate(parts)[np.argsort(np.argsort(rows))]

    def principal_components(self, count: int) -> tuple[NDArray[np.float64], float]:
        """Return the first principal components [F, most] of features of training pictures, and their share of
        variance.
        """
        if self._components is None or self._components[0] != count:
            rows = self._dataset.split(self._split, "train")
            chosen = numpy_generator(self._settings.seed, "components").permutation(len(rows))[:_BASIS]
            points = self.compute_features(rows[chosen]).astype(np.float64)
            _, sizes, directions = np.linalg.svd(points - points.mean(0), full_matrices=False)
            share = float((sizes[:count] ** 2).sum() / max((sizes**2).sum(), np.finfo(np.float64).tiny))
            self._components = (count, directions[:count].T, share)
        return self._components[1:]


def assign_halves(source: NDArray[np.int64]) -> NDArray[np.int64]:
    """Assign pictures of one description, in random order, to half 0 or 1 [n]: those of one source together.

    What the description leaves open is not divided evenly: halves are as different as random draws are.

    Args:
        source: [n].
    """
    _, first, number = np.unique(source, return_index=True, return_inverse=True)
    half = np.zeros(len(first), np.int64)
    half[np.argsort(first)] = np.arange(len(first)) % 2
    return half[number.reshape(-1)]


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
