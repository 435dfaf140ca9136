"""Standard errors of shares of correct answers (never 0), and of means over clustered examples.

References:
    Approximate is better than "exact" for interval estimation of binomial proportions (Agresti, Coull, 1998), The
    American Statistician 52
    Longitudinal Data Analysis Using Generalized Linear Models (Liang, Zeger, 1986), Biometrika 73
    Confidence Intervals for Proportions with Small Expected Number of Positive Counts Estimated from Survey Data (Korn,
    Graubard, 1998), Survey Methodology 24
    Bias Reduction in Standard Errors for Linear Regression with Multi-Stage Samples (Bell, McCaffrey, 2002), Survey
    Methodology 28
"""

import math
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmgen.results.score import Score

_ADDED = 2
"""Right answers added, and as many wrong ones (Agresti and Coull's "plus four")."""
LEAST_CORRELATION = 0.1
"""Least correlation of answers of one unit: few wrong answers do not show how much they lie together."""


def binomial_error(value: float, n: float) -> float:
    """Return the standard error, in percent, of a share ``value`` of correct among ``n`` independent answers.

    The formula adds two correct and two wrong answers. So 100 correct answers out of 100 have an error of 1.35 rather
    than 0, and value +- 1.96 errors covers a true share of 99 %. Large numbers and shares far from 0 and 100 % hardly
    change.

    Args:
        value: The share in percent.
        n: Number of answers, or the effective one.

    Example:
        >>> round(binomial_error(100.0, 100), 2), round(binomial_error(50.0, 100), 2)
        (1.35, 4.9)
    """
    total = n + 2 * _ADDED
    centre = (n * value / 100 + _ADDED) / total
    return 100 * math.sqrt(centre * (1 - centre) / total)


def widen_error(stderr: float, units: int) -> float:
    """Return a standard error with which value +- 1.96 errors is Student's interval of a mean over few units.

    Example:
        >>> round(widen_error(1.0, 8), 2), round(widen_error(1.0, 1000), 2)
        (1.21, 1.0)
    """
    from scipy.special import stdtrit

    return stderr * float(stdtrit(units - 1, 0.975)) / 1.96


@overload
def share_error(value: float, stderr: float, n: int, units: int | None = None) -> float: ...
@overload
def share_error(value: float, stderr: float | None, n: int, units: int | None = None) -> float | None: ...
def share_error(value: float, stderr: float | None, n: int, units: int | None = None) -> float | None:
    """Return the standard error of a mean of shares: ``stderr``, raised to a minimum so that it is never 0; percent.

    The minimum is that of :func:`binomial_error` for the effective number of answers (Korn and Graubard), the smaller
    of what the spread tells and what answers of one unit, correlated by .1, are worth. Without it value +- 1.96 errors
    holds 99.5 % of 40 descriptions in 82 of 100 evaluations: those that miss the few bad descriptions see no spread.

    Args:
        value: The share in percent.
        stderr: Standard error from the spread of the shares, in percent; the result is at least this, and at most 50.
            None gives None.
        n: Number of answers: pictures or data points.
        units: Number of independent units, such as descriptions; None if each answer is one.

    Example:
        >>> round(share_error(100.0, 0.0, 100), 2), round(share_error(50.0, 5.0, 100), 2)
        (1.35, 5.0)
        >>> round(share_error(100.0, 0.0, 100, units=10), 2)  # as 53 answers
        2.45
    """
    if stderr is None:
        return None
    share = value / 100
    count = n / (1 + LEAST_CORRELATION * (n / (units or n) - 1))
    if stderr and 0 < share < 1:
        count = min(count, share * (1 - share) * (100 / stderr) ** 2)
    total = count + 2 * _ADDED
    centre = (count * share + _ADDED) / total
    squares = (count * stderr / 100) ** 2 + count * (share - centre) ** 2
    added = _ADDED * ((1 - centre) ** 2 + centre**2)
    return min(50.0, max(stderr, 100 * math.sqrt(squares + added) / total))  # no share spreads further


def clustered_error(values: ArrayLike, clusters: ArrayLike | None = None, weights: ArrayLike | None = None) -> float:
    """Return the standard error of the weighted mean of values [N] that are independent only between clusters.

    With equal weights and one value per cluster it is the usual s / sqrt(N). A large cluster pulls the mean towards
    itself, so its distance from the mean is too small; this is corrected as by the jackknife.

    Args:
        values: The values [N].
        clusters: Number of the cluster of each value [N]; None for one cluster per value.
        weights: Weights of the values [N]; None for equal ones.

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


def add_clustered_error(score: Score, clusters: NDArray[np.int64] | None) -> Score:
    """Return a copy of a score whose standard error treats the values of a cluster, such as a picture, as dependent.

    The score stays the same if each point is its own cluster.

    Args:
        score: The score, with ``points``.
        clusters: Number of the cluster of each point [N]; None if unknown.
    """
    if clusters is None or score.points is None or len(score.points.values) != len(clusters):
        return score
    values = score.points.values
    _, numbered = np.unique(clusters, return_inverse=True)
    points = replace(score.points, clusters=numbered.reshape(-1).tolist())
    if points.units == len(values):
        return score
    spread = math.hypot(clustered_error(values, numbered), points.shared_stderr)
    error: float | None = spread if math.isfinite(spread) else None
    if error is not None and score.unit == "%":
        error = share_error(score.value, error, score.n)
    details = dict(score.details)
    if (bits := details.pop("bits_per_pixel_stderr", None)) and error is not None and score.stderr:
        details["bits_per_pixel_stderr"] = bits * error / score.stderr
    return replace(score, stderr=error, points=points, details=details)
