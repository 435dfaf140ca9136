"""Real pictures as a reference for drawn ones of the same descriptions, in two halves.

Comparing the halves with each other gives the best score to expect. Pictures of one source (several renderings of one
digit) are in one half, so that the halves are independent.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.settings import EvaluationSettings

if TYPE_CHECKING:
    from mmgen.artifacts import Dataset
    from mmgen.classifier import Classifier
    from mmgen.modalities.attributes import AttributesDescription

__all__ = ["LEAST", "Points", "RealPictures", "assign_halves", "read_sources"]

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
        half = assign_halves(codes, read_sources(self._dataset, rows))
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
        return self._judge_images(self._judge.predict, self.read_rows)

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


def read_sources(dataset: "Dataset", rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers [n] of the pictures that ``rows`` were rendered from, equal for rows of one picture."""
    known = dataset.read_sources(rows)
    return np.arange(len(rows)) if known is None else known


def assign_halves(codes: NDArray[np.uint8], source: NDArray[np.int64]) -> NDArray[np.int64]:
    """Assign each picture to half 0 or 1 [n]: pictures of one source together, those of a description evenly.

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
