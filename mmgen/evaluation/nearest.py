"""Nearest training pictures of drawn and of held-out pictures, by Euclidean distance in a space of features.

References:
    Extracting Training Data from Diffusion Models (Carlini, Hayes, Nasr, Jagielski, Sehwag, Tramèr, Balle, Ippolito,
    Wallace, 2023), arXiv:2301.13188, Section 5.1: the distance to a training picture relative to its neighbours'
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import avg_pool2d

if TYPE_CHECKING:
    from mmgen.artifacts import Dataset

__all__ = [
    "NEIGHBOURS",
    "Block",
    "NearestTraining",
    "find_nearest",
    "pool_pixels",
    "read_pooled_pixels",
    "training_blocks",
]

NEIGHBOURS = 50
"""Number of nearest sources whose distances are the scale of a relative distance, as in the paper."""

_SIDE = 16
"""Largest height and width at which pixels are compared."""
_ROWS = 2048
"""Training pictures that are compared at a time."""

Features = NDArray[np.float32]
Floats = NDArray[np.float64]
Block = tuple[NDArray[np.int64], NDArray[np.int64], Features]
"""Rows [c] of training pictures, their sources [c] and their features [c, F]."""


@dataclass(frozen=True)
class NearestTraining:
    """Nearest training picture of each of n pictures.

    Attributes:
        distances: Euclidean distance to it [n].
        rows: Its row in the dataset [n].
        scales: Mean distance to the nearest picture of each of the next ``NEIGHBOURS`` - 1 sources [n].
    """

    distances: Floats
    rows: NDArray[np.int64]
    scales: Floats

    @property
    def relative(self) -> Floats:
        """Distances in units of their scales [n]: 0 for a copy, up to 1 for a picture as near to many others."""
        return np.divide(self.distances, self.scales, out=np.zeros_like(self.distances), where=self.scales > 0)

    def __getitem__(self, part: slice) -> "NearestTraining":
        return NearestTraining(self.distances[part], self.rows[part], self.scales[part])


def pool_pixels(images: Tensor) -> Tensor:
    """Average pictures [n, C, H, W] over squares so that no side is above 16, and flatten them to [n, F].

    Values of other shapes are flattened only.
    """
    if images.dim() == 4 and (square := -(-max(images.shape[2:]) // _SIDE)) > 1:
        images = avg_pool2d(images, square, ceil_mode=True)
    return images.flatten(1).float()


def read_pooled_pixels(dataset: "Dataset", image: str, rows: NDArray[np.int64], seed: int) -> Features:
    """Read the pictures in ``rows`` of a dataset as :func:`pool_pixels` returns them, [n, F]."""
    return pool_pixels(torch.from_numpy(dataset.read_values(image, rows, seed))).numpy()


def training_blocks(
    dataset: "Dataset", rows: NDArray[np.int64], read: Callable[[NDArray[np.int64]], Features]
) -> Iterator[Block]:
    """Yield training pictures in increasing order of their sources, a bounded number at a time.

    Rows of one source, such as renderings of one digit, are in one block.

    Args:
        dataset: An open dataset.
        rows: Rows of the training pictures.
        read: Function from rows to features.
    """
    known = dataset.read_sources(rows)
    sources = np.arange(len(rows)) if known is None else known
    order = np.argsort(sources, kind="stable")
    rows, sources = rows[order], sources[order]
    start = 0
    while start < len(rows):
        last = sources[min(start + _ROWS, len(rows)) - 1]
        stop = int(np.searchsorted(sources, last, side="right"))
        yield rows[start:stop], sources[start:stop], read(rows[start:stop])
        start = stop


def find_nearest(points: Features, blocks: Iterator[Block]) -> NearestTraining:
    """Find the nearest training picture of each point [n, F] in one pass over the training pictures.

    Args:
        points: Features of the pictures.
        blocks: Rows, sources and features of training pictures, see :func:`training_blocks`.
    """
    origin = points.mean(0)
    left = points - origin
    norms = np.einsum("ij,ij->i", left, left)[:, None]
    count = len(points)
    nearest, best_rows = np.full(count, np.inf), np.zeros(count, np.int64)
    smallest = np.full((count, 1), np.inf, np.float32)
    for rows, sources, features in blocks:
        right = features - origin
        squares = np.maximum(norms + np.einsum("ij,ij->i", right, right) - 2 * (left @ right.T), 0)
        first = squares.argmin(1)
        exact = np.square(left - right[first]).sum(1, dtype=np.float64)  # the products above lose small differences
        closer = exact < nearest
        nearest[closer], best_rows[closer] = exact[closer], rows[first[closer]]
        starts = np.flatnonzero(np.r_[True, sources[1:] != sources[:-1]])
        by_source = squares if len(starts) == len(rows) else np.minimum.reduceat(squares, starts, axis=1)
        smallest = np.concatenate([smallest, by_source], axis=1)
        if smallest.shape[1] > NEIGHBOURS:
            smallest = np.partition(smallest, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
    others = np.sqrt(np.sort(smallest, axis=1).astype(np.float64))[:, 1:]
    others = np.where(np.isfinite(others), others, np.nan)
    scales = np.nanmean(others, axis=1) if np.isfinite(others).any() else np.zeros(count)
    distances = np.sqrt(nearest)
    return NearestTraining(distances, best_rows, np.maximum(scales, distances))
