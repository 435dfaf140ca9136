"""Standard errors of means over examples that come in clusters: patches of one picture, pictures of one source.

References:
    Longitudinal Data Analysis Using Generalized Linear Models (Liang, Zeger, 1986), Biometrika 73
    Bias Reduction in Standard Errors for Linear Regression with Multi-Stage Samples (Bell, McCaffrey, 2002), Survey
    Methodology 28
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmgen.results.score import Score
from mmgen.results.shares import share_error

__all__ = ["clustered", "clustered_error"]


def clustered_error(values: ArrayLike, clusters: ArrayLike | None = None, weights: ArrayLike | None = None) -> float:
    """Standard error of a weighed mean of values [N] with clusters as the independent units; NaN of a single cluster.

    Where every value is a cluster of its own and all weigh the same it is the usual s / sqrt(N). Clusters of several
    values each count as by the jackknife, which leaves one out at a time: the larger a cluster is beside the others,
    the more the mean follows it, so that its distance from the mean is too small.

    Args:
        values: [N].
        clusters: Which cluster each is of, any whole numbers [N]; None for each its own.
        weights: [N]; None for equal ones.

    Example:
        >>> round(clustered_error([1.0, 2.0, 3.0]), 4), round(clustered_error([1.0, 1.0, 3.0, 3.0], [0, 0, 1, 1]), 4)
        (0.5774, 1.0)
    """
    numbers = np.asarray(values, np.float64)
    weight = np.ones_like(numbers) if weights is None else np.asarray(weights, np.float64)
    off = weight * (numbers - np.average(numbers, weights=weight))
    of = np.arange(len(numbers)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    sums = np.bincount(of.reshape(-1), off)
    count = len(sums)
    rest = 1 - np.bincount(of.reshape(-1), weight) / weight.sum()
    if count < 2 or not (rest > 0).all():
        return math.nan
    if count < len(numbers):
        sums *= (1 - 1 / count) / rest
    return float(np.sqrt(count / (count - 1) * np.square(sums).sum()) / weight.sum())


def clustered(score: Score, clusters: NDArray[np.int64] | None) -> Score:
    """Return the score with the error of clusters, and its points with their clusters, so that differences have it too.

    Nothing changes where each point is a cluster of its own, or where the score is no mean of its points.

    Args:
        score: The score, with ``points``.
        clusters: Which cluster each of these points is of [N]; None where nothing is known of it.
    """
    if clusters is None or score.points is None or len(score.points.values) != len(clusters):
        return score
    values = score.points.values
    _, numbered = np.unique(clusters, return_inverse=True)
    points = replace(score.points, clusters=numbered.reshape(-1).tolist())
    if points.units == len(values) or not math.isclose(
        float(np.mean(values)), score.value, rel_tol=1e-4, abs_tol=0.006
    ):
        return score
    found = math.hypot(clustered_error(values, numbered), points.shared_stderr)
    error: float | None = found if math.isfinite(found) else None
    if error is not None and score.unit == "%":
        error = share_error(score.value, error, score.n)
    details = dict(score.details)
    if (bits := details.pop("bits_per_pixel_stderr", None)) and error is not None and score.stderr:
        details["bits_per_pixel_stderr"] = bits * error / score.stderr
    return replace(score, stderr=error, points=points, details=details)
