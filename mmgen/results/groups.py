"""Runs that differ only in their seed as one number, and differences of two such numbers, paired over seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean, stdev
from typing import Any, Literal

from mmgen.results.conditions import Conditions
from mmgen.results.number import Number
from mmgen.results.score import Score
from mmgen.results.standard_errors import clustered_error

__all__ = ["LEVEL", "Contrast", "Group", "contrast", "group_of", "is_best", "paired_difference"]

LEVEL = 0.95
"""Coverage of confidence intervals."""

_ROUNDED = 1e-12
"""Relative size of differences that are rounding errors."""
_EXACT = "parameters"
"""Unit of numbers without an error: a number of parameters is the same with every seed."""


@dataclass(frozen=True)
class Group:
    """One number over several runs that differ only in their seed, or of a single run.

    Attributes:
        mean: Mean over the runs.
        sd: Standard deviation over the runs, with n - 1; None for a single run.
        n: Number of runs.
        stderr: Standard error of the mean: sd / sqrt(n), over seeds; for a single run that of its score, over examples.
        runs: Their scores.
    """

    mean: float
    sd: float | None
    n: int
    stderr: float | None
    runs: tuple[Score, ...]

    @property
    def number(self) -> Number:
        """Return the mean with its standard deviation over seeds, or a single score with its standard error."""
        error = self.sd if self.n > 1 else self.stderr
        return Number(self.mean, error, whole=self.runs[0].unit == _EXACT)

    @property
    def by_attribute(self) -> dict[str, float]:
        """Compute means over the runs for each attribute that all of them have."""
        each = [score.by_attribute for score in self.runs]
        return {name: fmean(one[name] for one in each) for name in each[0] if all(name in one for one in each)}

    @property
    def samples(self) -> int:
        """Return the number of samples of all runs together."""
        return sum(score.n for score in self.runs)

    @property
    def by_seed(self) -> dict[str, Score]:
        """Return the runs with a known seed, by seed."""
        return {score.run["seed"]: score for score in self.runs if score.run}


def group_of(runs: Sequence[Score]) -> Group:
    """Return mean and standard deviation over runs, at least one.

    Example:
        >>> scores = [Score("m", "q", value, 0.3, "%", "higher", 10, "own") for value in (1.0, 2.0, 3.0)]
        >>> group = group_of(scores)
        >>> group.mean, group.sd, group.n, round(group.stderr, 3)
        (2.0, 1.0, 3, 0.577)
    """
    values = [score.value for score in runs]
    if len(values) == 1:
        return Group(values[0], None, 1, runs[0].stderr, tuple(runs))
    sd = _spread(values)
    return Group(fmean(values), sd, len(values), sd / math.sqrt(len(values)), tuple(runs))


@dataclass(frozen=True)
class Contrast:
    """Difference of two groups, with its standard error and interval.

    Attributes:
        value: Difference of the means.
        stderr: Its standard error; None if that of a group is unknown; 0 where all differences are equal, so that
            there is no spread to estimate it from.
        low: Lower end of the interval of :data:`LEVEL`; None without an error, or where that is 0.
        high: Upper end.
        n: Number of seeds where it is paired over seeds; else 1.
        over: Source of the error: "seeds" that both share (t interval); "points" that two single runs share (t
            interval); "both", two groups of other seeds (Welch's interval); "examples", two single runs as if they were
            independent (normal interval).
    """

    value: float
    stderr: float | None
    low: float | None
    high: float | None
    n: int
    over: Literal["seeds", "points", "both", "examples"]

    @property
    def number(self) -> Number:
        """Return the difference with its interval."""
        interval = None if self.low is None or self.high is None else (self.low, self.high)
        note = " (no spread)" if self.stderr == 0 else ""
        error = self.stderr if interval else None
        return Number(self.value, error, signed=True, interval=interval, note=note)


def contrast(last: Group, first: Group) -> Contrast:
    """Return ``last`` less ``first``: paired over seeds that both share, or over points that two single runs share.

    References:
        The generalization of "Student's" problem when several different population variances are involved (Welch,
        1947), Biometrika 34
    """
    value, one, other = last.mean - first.mean, first.by_seed, last.by_seed
    if last.runs[0].unit == _EXACT:
        return Contrast(value, None, None, None, 1, "examples")
    if one.keys() == other.keys() and len(one) == first.n == last.n > 1:
        error = _paired_spread([(one[seed].value, other[seed].value) for seed in one]) / math.sqrt(first.n)
        return _interval(value, error, first.n - 1, first.n, "seeds")
    if first.n == last.n == 1:
        before, after = first.runs[0], last.runs[0]
        points = paired_difference(before, after)
        if points is not None:
            units = before.points.units if before.points else 0
            return _interval(value, points[1], units - 1, 1, "points")
        return _interval(value, _apart(before.stderr, after.stderr), None, 1, "examples")
    both = _apart(first.stderr, last.stderr)
    if first.n < 2 or last.n < 2 or not both:
        return _interval(value, both, None, 1, "examples")
    shares = [((group.stderr or 0.0) / both) ** 2 for group in (first, last)]  # of the variance, which sum to 1
    freedom = 1 / sum(share**2 / (group.n - 1) for share, group in zip(shares, (first, last), strict=True))
    return _interval(value, both, freedom, 1, "both")


def _spread(values: Sequence[float]) -> float:
    """Return the standard deviation with n - 1; NaN where a value is not finite."""
    return stdev(values) if all(map(math.isfinite, values)) else math.nan


def _paired_spread(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the standard deviation of differences; 0 where they differ by rounding errors alone."""
    spread = _spread([b - a for a, b in pairs])
    return 0.0 if spread <= _ROUNDED * max(map(abs, chain(*pairs))) else spread


def _apart(one: float | None, other: float | None) -> float | None:
    """Return the standard error of the difference of two independent numbers."""
    return None if one is None or other is None else math.hypot(one, other)


def _interval(value: float, error: float | None, freedom: float | None, n: int, over: Any) -> Contrast:
    if not error or not math.isfinite(error):
        return Contrast(value, error, None, None, n, over)
    from scipy import stats  # takes as long to load as all else here

    share = 0.5 + LEVEL / 2
    reach = error * float(stats.norm.ppf(share) if freedom is None else stats.t.ppf(share, freedom))
    return Contrast(value, error, value - reach, value + reach, n, over)


def paired_difference(before: Score, after: Score) -> tuple[float, float] | None:
    """Return mean and standard error of ``after`` less ``before``, point by point; None where the points differ.

    A score without points is no mean of them, such as a median; nor can scores be paired where a point is not finite.
    Noise that points of a score share is no part of how their differences spread, and is added. Clusters of points are
    the independent units.
    """
    one, other = before.points, after.points
    if one is None or other is None or len(one.values) != len(other.values) or len(one.values) < 2:
        return None
    if Conditions.of(before) != Conditions.of(after) or (before.given, before.seed) != (after.given, after.seed):
        return None
    if (one.weights, one.clusters) != (other.weights, other.clusters):
        return None
    weights, clusters = one.weights or [1.0] * len(one.values), one.clusters or list(range(len(one.values)))
    if not all(map(math.isfinite, (*one.values, *other.values, *weights))) or not (total := math.fsum(weights)) > 0:
        return None
    if not len(weights) == len(clusters) == len(one.values) or len(set(clusters)) < 2:
        return None

    def mean(numbers: Sequence[float]) -> float:
        return math.fsum(w * number for w, number in zip(weights, numbers, strict=True)) / total

    if not (_is_rounded(mean(one.values), before.value) and _is_rounded(mean(other.values), after.value)):
        return None
    differences = [b - a for a, b in zip(one.values, other.values, strict=True)]
    # The ratio estimator's variance, as of the scores themselves; with equal weights the usual sd / sqrt(n).
    error = clustered_error(differences, clusters, weights)
    if not _paired_spread(list(zip(one.values, other.values, strict=True))):
        error = 0.0
    return mean(differences), math.hypot(error, one.shared_stderr, other.shared_stderr)


def _is_rounded(mean: float, value: float) -> bool:
    """Return whether a mean of points equals the score up to the rounding of points in files."""
    return math.isclose(mean, value, rel_tol=1e-4, abs_tol=0.006)


def is_best(cell: Group | None, rivals: Sequence[Group | None]) -> bool:
    """Return whether no rival beats a cell: the interval of :data:`LEVEL` of each difference holds 0.

    Without a rival, and where neither way is better, nothing is best. Between numbers without errors the difference
    itself counts; with an error and no interval none beats the other: equal differences of two seeds prove nothing.

    The level holds for each comparison alone: of eight equal rows, a given one is beaten in about every seventh
    table.
    """
    others = [rival for rival in rivals if rival is not None]
    if cell is None or not others or not math.isfinite(cell.mean) or cell.runs[0].better == "neither":
        return False
    higher = cell.runs[0].better == "higher"
    return not any(_beats(contrast(rival, cell), higher) for rival in others if math.isfinite(rival.mean))


def _beats(difference: Contrast, higher: bool) -> bool:
    if difference.low is None or difference.high is None:
        low = high = difference.value if difference.stderr is None else 0.0
    else:
        low, high = difference.low, difference.high
    return low > 0 if higher else high < 0
