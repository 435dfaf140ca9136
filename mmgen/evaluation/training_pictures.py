r"""The model's training pictures: the nearest to drawn and to held-out ones, and the share of copies.

References:
    Extracting Training Data from Diffusion Models (Carlini, Hayes, Nasr, Jagielski, Sehwag, Tramèr, Balle, Ippolito,
    Wallace, 2023), arXiv:2301.13188, Section 5.1: the distance to a training picture relative to its neighbours'

Each picture has a relative distance: that to its nearest training picture, divided by the mean distance to the next
nearest ones. It is 0 for a copy, and unlike the distance itself it depends little on how blurred a picture is and how
crowded its neighbourhood. Held-out pictures say how small it is by chance. With m of them, a new real picture is as
near as the k-th nearest with probability k / (m + 1), whatever the distribution. The threshold is the k-th for
k = (m + 1) / 100, so that 1 % is expected of a perfect model.

Data often hold pictures almost twice, in the training part and among the held-out ones. Then the k-th is such a twin,
and hardly a copy would be as near. So the threshold is never below a quarter of the median of held-out pictures, and
the share of them that is as near is the floor: what a perfect model has.

References:
    Extracting Training Data from Diffusion Models (Carlini et al., 2023), arXiv:2301.13188, Section 5.1
    A Non-Parametric Test to Detect Data-Copying in Generative Models (Meehan, Chaudhuri, Dasgupta, 2020),
    arXiv:2004.05675, Section 3: the Mann-Whitney statistic of distances
    Confidence Intervals for Proportions with Small Expected Number of Positive Counts Estimated from Survey Data (Korn,
    Graubard, 1998), Survey Methodology 24: binomial intervals with the effective number of answers
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import avg_pool2d

from mmgen.core.seeding import numpy_generator
from mmgen.results.standard_errors import binomial_error, clustered_error, share_error

if TYPE_CHECKING:
    from mmgen.artifacts import Dataset
    from mmgen.evaluation import Evaluation


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


def to_bytes(images: Tensor) -> Tensor:
    """Round pictures [n, C, H, W] with values from 0 to 1 to bytes, and flatten them to [n, F]."""
    return (images.clamp(0, 1) * 255).round().to(torch.uint8).flatten(1)


def read_pooled_pixels(dataset: "Dataset", image: str, rows: NDArray[np.int64], seed: int) -> Features:
    """Read the pictures in ``rows`` of a dataset as :func:`pool_pixels` returns them, [n, F]."""
    return pool_pixels(torch.from_numpy(dataset.read_values(image, rows, seed))).numpy()


def read_sources(dataset: "Dataset", rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers [n] of the pictures that ``rows`` were rendered from, equal for rows of one picture."""
    known = dataset.read_sources(rows)
    return np.arange(len(rows)) if known is None else known


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
    sources = read_sources(dataset, rows)
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
        return self._evaluation.dataset.split(self._evaluation.loaded.settings.data.split, "train", real=True)

    @property
    def held_out_rows(self) -> NDArray[np.int64]:
        """Rows of at most 2,000 pictures of the evaluated part that are no training pictures, in random order."""
        rows = np.setdiff1d(self._evaluation.rows(), self.rows)
        return numpy_generator(self._evaluation.settings.seed, "held-out pictures").permutation(rows)[:_HELD_OUT]

    @property
    def held_out_sources(self) -> NDArray[np.int64]:
        """Numbers of the sources of :attr:`held_out_rows`, equal for pictures of one source."""
        return read_sources(self._evaluation.dataset, self.held_out_rows)

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

    def are_copies(self, images: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return which of n images [n, C, H, W] are near copies, by the rule of the metric ``copies`` on pixels."""
        drawn, held_out = self.find_nearest(pool_pixels(torch.from_numpy(images)).numpy(), "pixels")
        return drawn.relative <= _find_threshold(np.sort(held_out.relative))

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


_QUANTILE = 0.01
_SHARE_OF_MEDIAN = 0.25
_RESAMPLES = 200

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class CopyShare:
    """Share of copies among drawn pictures, and what it is compared with; shares in percent.

    Attributes:
        value: Share of drawn pictures whose relative distance is at most ``threshold``.
        stderr: Its standard error, over descriptions and over the held-out pictures that set the threshold.
        low: Lower end of the 95 % interval.
        high: Upper end.
        floor: The same share of held-out pictures: what a perfect model has.
        floor_stderr: Its standard error.
        threshold: Relative distance at most of a copy.
        nearer: Percentage of pairs of a drawn and a held-out picture in which the drawn one is nearer to its nearest
            training picture: 50 % for a perfect model, more for copies and also for blurred pictures.
        nearer_stderr: Its standard error.
    """

    value: float
    stderr: float
    low: float
    high: float
    floor: float
    floor_stderr: float
    threshold: float
    nearer: float
    nearer_stderr: float | None


def compare_with_held_out(
    drawn: NearestTraining,
    descriptions: Integers,
    weights: Floats,
    held_out: NearestTraining,
    sources: Integers,
    seed: int,
) -> CopyShare:
    """Compare the nearest distances of n drawn pictures with those of m held-out ones.

    Args:
        drawn: Nearest training pictures of the drawn ones [n].
        descriptions: Number of the description of each drawn picture [n]; pictures of one are dependent.
        weights: Weight of each drawn picture [n].
        held_out: Nearest training pictures of the held-out ones [m].
        sources: Number of the source of each held-out picture [m]; pictures of one are dependent.
        seed: Seed of the resampling of held-out pictures.
    """
    relative, held = drawn.relative, np.sort(held_out.relative)
    threshold = _find_threshold(held)
    is_copy = np.where(relative <= threshold, 100.0, 0.0)
    value = float(np.average(is_copy, weights=weights))
    spread = _clustered_or_zero(is_copy, descriptions, weights)
    shares = [
        float(np.average(100.0 * (relative <= each), weights=weights))
        for each in _resampled_thresholds(held_out.relative, sources, seed)
    ]
    error = math.hypot(spread, float(np.std(shares)))
    ends = share_interval(value, error, len(relative))
    low, high = min(ends[0], float(np.quantile(shares, 0.025))), max(ends[1], float(np.quantile(shares, 0.975)))
    # The picture that sets the threshold would be one of m + 1.
    floor = 100.0 * float((held <= threshold).sum()) / (len(held) + 1)
    nearer, nearer_stderr = _share_of_nearer_pairs(drawn.distances, descriptions, weights, held_out.distances, sources)
    return CopyShare(
        value,
        share_error(value, error, len(relative)),
        low,
        high,
        floor,
        binomial_error(floor, len(held)),
        threshold,
        nearer,
        nearer_stderr,
    )


def _find_threshold(held: Floats) -> float:
    """Return the largest relative distance of a copy, from those of held-out pictures [m] in increasing order."""
    place = max(1, round(_QUANTILE * (len(held) + 1)))
    return max(float(held[place - 1]), _SHARE_OF_MEDIAN * float(np.median(held)))


def _resampled_thresholds(relative: Floats, sources: Integers, seed: int) -> list[float]:
    """Return thresholds by resamples of the sources of held-out pictures, with replacement."""
    rng = numpy_generator(seed, "copies")
    order = np.argsort(sources, kind="stable")
    parts = np.split(relative[order], np.flatnonzero(np.diff(sources[order])) + 1)
    thresholds = []
    for _ in range(_RESAMPLES):
        chosen = rng.integers(len(parts), size=len(parts))
        thresholds.append(_find_threshold(np.sort(np.concatenate([parts[index] for index in chosen]))))
    return thresholds


def _clustered_or_zero(values: Floats, clusters: Integers, weights: Floats | None = None) -> float:
    """Return the clustered standard error of a mean; that of independent values where all are of one cluster."""
    error = clustered_error(values, clusters, weights)
    error = error if math.isfinite(error) else clustered_error(values, None, weights)
    return error if math.isfinite(error) else 0.0


def _share_of_nearer_pairs(
    drawn: Floats, descriptions: Integers, weights: Floats, held: Floats, sources: Integers
) -> tuple[float, float]:
    """Return the percentage of pairs in which the drawn picture is nearer, ties by half, and DeLong's error."""
    ranks = np.sort(held)
    farther = len(held) - (np.searchsorted(ranks, drawn, "left") + np.searchsorted(ranks, drawn, "right")) / 2
    by_drawn = 100.0 * farther / len(held)
    order = np.argsort(drawn)
    cumulated = np.r_[0.0, np.cumsum(weights[order])]
    below = (
        cumulated[np.searchsorted(drawn[order], held, "left")] + cumulated[np.searchsorted(drawn[order], held, "right")]
    )
    by_held = 100.0 * below / 2 / weights.sum()
    error = math.hypot(_clustered_or_zero(by_drawn, descriptions, weights), _clustered_or_zero(by_held, sources))
    return float(np.average(by_drawn, weights=weights)), error


def share_interval(value: float, stderr: float, n: int) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a share, by Clopper and Pearson with the effective number of answers.

    Args:
        value: The share in percent.
        stderr: Its standard error in percent, without a least value; it sets the effective number of answers.
        n: Number of answers, the most effective ones.

    Example:
        >>> [round(end, 2) for end in share_interval(0.0, 0.0, 100)]
        [0.0, 3.62]
        >>> [round(end, 2) for end in share_interval(2.0, 1.4, 100)]
        [0.24, 7.04]
    """
    from scipy.stats import beta

    share = value / 100
    effective = min(float(n), share * (1 - share) * (100 / stderr) ** 2) if stderr > 0 and 0 < share < 1 else float(n)
    right, wrong = share * effective, (1 - share) * effective
    low = 0.0 if value <= 0 else float(beta.ppf(0.025, right, wrong + 1))
    high = 1.0 if value >= 100 else float(beta.ppf(0.975, right + 1, wrong))
    return 100 * low, 100 * high
