"""The model's training pictures, with which drawn and held-out pictures are compared."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.nearest import Block, NearestTraining, find_nearest, read_pooled_pixels, training_blocks

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Space", "TrainingPictures", "explain_missing_held_out_pictures", "explain_missing_training_pictures"]

Space = Literal["pixels", "features"]
"""Pixels, averaged to at most 16 x 16, or features of the attribute classifier."""

_HELD_OUT = 2000
"""Largest number of held-out pictures that are compared."""


class TrainingPictures:
    """Search for the nearest training pictures of drawn and held-out pictures.

    Args:
        evaluation: The evaluation.
    """

    def __init__(self, evaluation: "Evaluation") -> None:
        self._evaluation = evaluation
        self._held_out: dict[Space, NearestTraining] = {}

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of the training pictures: the training part of the split that the model was trained on."""
        return self._evaluation.dataset.split(self._evaluation.loaded.settings.data.split, "train")

    @property
    def held_out_rows(self) -> NDArray[np.int64]:
        """Rows of at most 2,000 pictures of the evaluated part that are no training pictures, in random order."""
        rows = np.setdiff1d(self._evaluation.rows(), self.rows)
        return numpy_generator(self._evaluation.settings.seed, "held-out pictures").permutation(rows)[:_HELD_OUT]

    @property
    def held_out_sources(self) -> NDArray[np.int64]:
        """Numbers of the sources of :attr:`held_out_rows`, equal for pictures of one source."""
        rows = self.held_out_rows
        known = self._evaluation.dataset.read_sources(rows)
        return np.arange(len(rows)) if known is None else known

    def find_nearest(self, points: NDArray[np.float32], space: Space) -> tuple[NearestTraining, NearestTraining]:
        """Return the nearest training pictures of points [n, F], and those of the held-out pictures.

        Args:
            points: Pooled pixels or features of pictures.
            space: Which of the two.
        """
        if space in self._held_out:
            return find_nearest(points, self._training_blocks(space)), self._held_out[space]
        both = np.concatenate([points, self._read(space, self.held_out_rows)])
        nearest = find_nearest(both, self._training_blocks(space))
        self._held_out[space] = nearest[len(points) :]
        return nearest[: len(points)], self._held_out[space]

    def _training_blocks(self, space: Space) -> Iterator[Block]:
        return training_blocks(self._evaluation.dataset, self.rows, partial(self._read, space))

    def _read(self, space: Space, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        evaluation = self._evaluation
        if space == "features":
            return evaluation.real_pictures.compute_features(rows)
        assert evaluation.loaded.observation is not None
        return read_pooled_pixels(
            evaluation.dataset, evaluation.loaded.observation.name, rows, evaluation.settings.seed
        )


def explain_missing_training_pictures(evaluation: "Evaluation") -> str:
    """Return a reason if the evaluated dataset does not hold the model's training pictures; else ""."""
    dataset, loaded = evaluation.dataset, evaluation.loaded
    if dataset.header.content_id not in [parent.content_id for parent in loaded.model_header.parents]:
        return (
            f"needs the pictures that {loaded.model_path} was trained on, and {dataset.path} is another "
            "dataset; leave --dataset out"
        )
    if dataset.splits_edges(evaluation.split) or dataset.splits_edges(loaded.settings.data.split):
        return "needs training pictures one by one, and the split divides the edges of a graph; choose another metric"
    return ""


def explain_missing_held_out_pictures(evaluation: "Evaluation") -> str:
    """Return a reason if the evaluated part holds training pictures alone; else ""."""
    if not len(evaluation.training_pictures.held_out_rows):
        return (
            f"needs held-out pictures, and all of part '{evaluation.settings.part}' are training pictures; use "
            "--part test"
        )
    return ""
