"""Groups of scores of one quantity, such as seeds, and their order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from statistics import fmean, stdev
from typing import Any, Literal

from mmgen.results.conditions import Conditions
from mmgen.results.naming import RETRIEVAL
from mmgen.results.number import Number
from mmgen.results.score import Score
from mmgen.results.standard_errors import clustered_error

_Identity = tuple[str, str]
"""Name of a posterior, and content id of the file of its fit."""


@dataclass(frozen=True)
class MeasuredPosterior:
    """Correctness and coverage of one posterior, each for the descriptions with the most attributes."""

    right: Score
    varied: Score | None

    @property
    def sum(self) -> tuple[bool, float]:
        """Sort key: posteriors with both scores before others, then by the sum of their scores."""
        return self.varied is not None, self.right.value + (self.varied.value if self.varied else 0.0)


def rank_posteriors(scores: Sequence[Score]) -> list[MeasuredPosterior]:
    """Rank the posteriors of one model by the sum of correctness and coverage, the highest first.

    Scores of the first attribute classifier on the first dataset count. The prior is left out.

    Args:
        scores: Scores of one model; others than correctness and coverage are ignored.
    """
    alike: dict[Conditions, dict[tuple[str, int], dict[_Identity, Score]]] = {}
    for score in scores:
        if score.metric not in ("correctness", "coverage") or score.posterior in ("prior", RETRIEVAL):
            continue
        if score.given and math.isfinite(score.value):
            same = alike.setdefault(shared_conditions(score), {})
            same.setdefault((score.metric, score.given), {}).setdefault(fit_identity(score), score)
    for found in alike.values():
        right, varied = _with_most_attributes(found, "correctness"), _with_most_attributes(found, "coverage")
        if right:
            rows = [MeasuredPosterior(score, varied.get(identity)) for identity, score in right.items()]
            return sorted(rows, key=lambda row: row.sum, reverse=True)
    return []


def shared_conditions(score: Score) -> Conditions:
    """Return the conditions that scores of several metrics share: dataset, judge, protocol, split and part."""
    named = Conditions.from_score(score)
    further = tuple(one for one in named.further if one[0] in ("split", "part"))
    return named._replace(metric="", unit="", further=further)


def fit_identity(score: Score) -> _Identity:
    """Return the name of a posterior and the content id of its fit."""
    return score.source, score.ids.get("aggregate", "")


def _with_most_attributes(
    scores: Mapping[tuple[str, int], dict[_Identity, Score]], metric: str
) -> dict[_Identity, Score]:
    return scores.get(max((key for key in scores if key[0] == metric), default=("", 0)), {})


LEVEL = 0.95
"""Coverage of confidence intervals."""

_ROUNDED = 1e-12
"""Relative size of differences that are rounding errors."""
_EXACT = "parameters"
"""Unit of exact numbers: the number of parameters does not depend on the seed."""


@dataclass(frozen=True)
class RunGroup:
    """Mean score of training runs that differ only in their seed, or the score of a single run.

    Attributes:
        mean: Mean over the runs.
        sd: Standard deviation over the runs, with n - 1; None for a single run.
        n: Number of runs.
        stderr: Standard error of the mean, sd / sqrt(n) over seeds; for a single run the error of its score.
        runs: Scores of the runs.
    """

    mean: float
    sd: float | None
    n: int
    stderr: float | None
    runs: tuple[Score, ...]

    @property
    def number(self) -> Number:
        """Mean score with its standard deviation over seeds, or for a single run the score with its standard error."""
        error = self.sd if self.n > 1 else self.stderr
        return Number(self.mean, error, whole=self.runs[0].unit == _EXACT)

    @property
    def by_attribute(self) -> dict[str, float]:
        """Mean score of each attribute over the runs, for attributes that all runs measured."""
        each = [score.by_attribute for score in self.runs]
        return {name: fmean(one[name] for one in each) for name in each[0] if all(name in one for one in each)}

    @property
    def samples(self) -> int:
        """Total number of samples (pictures or examples) behind the scores of all runs."""
        return sum(score.n for score in self.runs)

    @property
    def by_seed(self) -> dict[str, Score]:
        """Scores of the runs by seed; runs with unknown seeds are left out."""
        return {score.run["seed"]: score for score in self.runs if score.run}


def group_runs(runs: Sequence[Score]) -> RunGroup:
    """Compute mean and standard deviation of the scores of training runs that differ only in their seed.

    Example:
        >>> scores = [Score("m", "q", value, 0.3, "%", "higher", 10, "own") for value in (1.0, 2.0, 3.0)]
        >>> group = group_runs(scores)
        >>> group.mean, group.sd, group.n, round(group.stderr, 3)
        (2.0, 1.0, 3, 0.577)
    """
    values = [score.value for score in runs]
    if len(values) == 1:
        return RunGroup(values[0], None, 1, runs[0].stderr, tuple(runs))
    sd = _standard_deviation(values)
    return RunGroup(fmean(values), sd, len(values), sd / math.sqrt(len(values)), tuple(runs))


@dataclass(frozen=True)
class Contrast:
    """Difference between the mean scores of two groups of runs, with its standard error and confidence interval.

    Attributes:
        value: Difference of the means.
        stderr: Standard error of the difference; None if a group has none; 0 if all paired differences are equal.
        low: Lower end of the interval of :data:`LEVEL`; None if ``stderr`` is None or 0.
        high: Upper end of the interval.
        n: Number of seeds of a difference paired over seeds; else 1.
        over: Source of the error: "seeds" shared by both groups (t interval); "points" shared by two single runs (t
            interval); "both" for groups of different seeds (Welch's interval); "examples" for two single runs, treated
            as independent (normal interval).
    """

    value: float
    stderr: float | None
    low: float | None
    high: float | None
    n: int
    over: Literal["seeds", "points", "both", "examples"]

    @property
    def number(self) -> Number:
        """Difference with its confidence interval, for tables."""
        interval = None if self.low is None or self.high is None else (self.low, self.high)
        note = " (no spread)" if self.stderr == 0 else ""
        error = self.stderr if interval else None
        return Number(self.value, error, signed=True, interval=interval, note=note)


def contrast(group: RunGroup, reference: RunGroup) -> Contrast:
    """Compute the difference of mean scores, ``group`` minus ``reference``, paired over shared seeds or examples.

    References:
        The generalization of "Student's" problem when several different population variances are involved (Welch,
        1947), Biometrika 34
    """
    value, one, other = group.mean - reference.mean, reference.by_seed, group.by_seed
    if group.runs[0].unit == _EXACT:
        return Contrast(value, None, None, None, 1, "examples")
    if one.keys() == other.keys() and len(one) == reference.n == group.n > 1:
        error = _paired_standard_deviation([(one[seed].value, other[seed].value) for seed in one]) / math.sqrt(
            reference.n
        )
        return _contrast_with_interval(value, error, reference.n - 1, reference.n, "seeds")
    if reference.n == group.n == 1:
        before, after = reference.runs[0], group.runs[0]
        points = paired_difference(before, after)
        if points is not None:
            units = before.points.units if before.points else 0
            return _contrast_with_interval(value, points[1], units - 1, 1, "points")
        return _contrast_with_interval(value, _independent_error(before.stderr, after.stderr), None, 1, "examples")
    both = _independent_error(reference.stderr, group.stderr)
    if reference.n < 2 or group.n < 2 or not both:
        return _contrast_with_interval(value, both, None, 1, "examples")
    shares = [((side.stderr or 0.0) / both) ** 2 for side in (reference, group)]  # of the variance, which sum to 1
    freedom = 1 / sum(share**2 / (side.n - 1) for share, side in zip(shares, (reference, group), strict=True))
    return _contrast_with_interval(value, both, freedom, 1, "both")


def _standard_deviation(values: Sequence[float]) -> float:
    """Return the sample standard deviation (divisor n - 1); NaN if a value is not finite."""
    return stdev(values) if all(map(math.isfinite, values)) else math.nan


def _paired_standard_deviation(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the standard deviation of the differences within pairs; 0 if they differ only by rounding errors."""
    spread = _standard_deviation([b - a for a, b in pairs])
    return 0.0 if spread <= _ROUNDED * max(map(abs, chain(*pairs))) else spread


def _independent_error(first: float | None, second: float | None) -> float | None:
    """Return the standard error of the difference of two independent numbers."""
    return None if first is None or second is None else math.hypot(first, second)


def _contrast_with_interval(
    value: float, error: float | None, degrees_of_freedom: float | None, n: int, over: Any
) -> Contrast:
    if not error or not math.isfinite(error):
        return Contrast(value, error, None, None, n, over)
    from scipy import stats  # takes as long to load as all else here

    share = 0.5 + LEVEL / 2
    reach = error * float(
        stats.norm.ppf(share) if degrees_of_freedom is None else stats.t.ppf(share, degrees_of_freedom)
    )
    return Contrast(value, error, value - reach, value + reach, n, over)


def differ(one: Score, other: Score) -> bool:
    """Return whether two scores differ at the level of confidence intervals, paired by example if possible."""
    difference = contrast(group_runs([one]), group_runs([other]))
    if difference.low is None or difference.high is None:
        return difference.stderr is None and difference.value != 0
    return difference.low > 0 or difference.high < 0


def paired_difference(before: Score, after: Score) -> tuple[float, float] | None:
    """Return mean and standard error of ``after`` minus ``before``, paired by example; None if they share no examples.

    Scores cannot be paired if they have no points, such as medians, or other points, or if a point is not finite. The
    spread of differences does not show noise that all points of a score share, so that is added. Clusters of points
    are the independent units.
    """
    one, other = before.points, after.points
    if one is None or other is None or len(one.values) != len(other.values) or len(one.values) < 2:
        return None
    if Conditions.from_score(before) != Conditions.from_score(after) or (before.given, before.seed) != (
        after.given,
        after.seed,
    ):
        return None
    if (one.weights, one.clusters) != (other.weights, other.clusters):
        return None
    weights, clusters = one.weights or [1.0] * len(one.values), one.clusters or list(range(len(one.values)))
    if not all(map(math.isfinite, (*one.values, *other.values, *weights))) or not math.fsum(weights) > 0:
        return None
    if not len(weights) == len(clusters) == len(one.values) or len(set(clusters)) < 2:
        return None
    differences = [b - a for a, b in zip(one.values, other.values, strict=True)]
    # The ratio estimator's variance, as of the scores themselves; with equal weights the usual sd / sqrt(n).
    error = clustered_error(differences, clusters, weights)
    if not _paired_standard_deviation(list(zip(one.values, other.values, strict=True))):
        error = 0.0
    return other.mean - one.mean, math.hypot(error, one.shared_stderr, other.shared_stderr)


def rank_groups(cells: Iterable[RunGroup | None]) -> list[RunGroup]:
    """Sort the cells of a column by their means, the best first; those that are not finite are the last."""
    groups = [cell for cell in cells if cell is not None]
    return sorted(groups, key=lambda group: _rank(group.mean, group.runs[0].better == "higher"))


def _rank(mean: float, higher: bool) -> float:
    """Return a key that sorts means, the best first."""
    return math.inf if not math.isfinite(mean) else -mean if higher else mean


def is_best(cell: RunGroup | None, ranked: Sequence[RunGroup]) -> bool:
    """Return whether no rival has a significantly better score than a cell, at the confidence level :data:`LEVEL`.

    Args:
        cell: The cell; None for an empty one.
        ranked: All cells of its column by :func:`rank_groups`, of which only those with a better mean are compared.

    A cell without rivals, or of a score without a better direction, is not best. Numbers without errors are compared
    directly. A difference with an error of 0 beats nothing, since equal differences of two seeds prove nothing.

    The level holds for each comparison alone: of eight equal rows, a given one is beaten in about every seventh
    table.
    """
    if cell is None or len(ranked) < 2 or not math.isfinite(cell.mean) or cell.runs[0].better == "neither":
        return False
    higher = cell.runs[0].better == "higher"
    rivals = takewhile(lambda rival: _rank(rival.mean, higher) < _rank(cell.mean, higher), ranked)
    return not any(_is_better(contrast(rival, cell), higher) for rival in rivals)


def _is_better(difference: Contrast, higher: bool) -> bool:
    if difference.low is None or difference.high is None:
        low = high = difference.value if difference.stderr is None else 0.0
    else:
        low, high = difference.low, difference.high
    return low > 0 if higher else high < 0
