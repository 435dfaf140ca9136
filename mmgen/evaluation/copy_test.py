r"""The share of drawn pictures that are nearer to a training picture than held-out real pictures are to theirs.

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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.nearest import NearestTraining
from mmgen.results.standard_errors import binomial_error, clustered_error, share_error

__all__ = ["CopyShare", "compare_with_held_out", "share_interval"]

_QUANTILE = 0.01
_SHARE_OF_MEDIAN = 0.25
_RESAMPLES = 200

Floats = NDArray[np.float64]
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
