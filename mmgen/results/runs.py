"""Runs that differ only in their seed as one number, and how two such numbers differ, paired over seeds."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from statistics import fmean, stdev
from typing import Any, Literal

from mmgen.results.clusters import clustered_error
from mmgen.results.conditions import Conditions
from mmgen.results.number import Number
from mmgen.results.score import Score

__all__ = [
    "LEVEL",
    "Contrast",
    "Group",
    "common_name",
    "contrast",
    "described_run",
    "is_best",
    "paired_points",
    "summed_up",
]

LEVEL = 0.95
"""Share of intervals that hold the truth."""

_ROUNDED = 1e-12
"""Part of a number below which differences are those of rounding."""
_EXACT = "parameters"
"""Unit of what has no error: a number of parameters is the same with every seed."""

_NOT_OF_THE_RUN = ("seed", "device", "devices", "tensorboard")
"""Settings of training that a run may differ in and still be another seed of the same."""


def described_run(
    name: str,
    seeds: Sequence[int],
    settings: Sequence[Mapping[str, Any]],
    data: Iterable[str],
    *,
    members: Iterable[Mapping[str, str]] = (),
    beginnings: Iterable[str] = (),
) -> dict[str, str]:
    """What a score says of the run behind it: see :attr:`mmgen.results.score.Score.run`.

    Args:
        name: What the file is called, without its ending.
        seeds: Seeds of what was trained: the model, and what was fitted to it.
        settings: Settings of the same.
        data: Content ids of what it learnt from.
        members: What was used that is not part of mmgen, as headers tell it.
        beginnings: Digests of the runs whose weights it began with, or content ids where only these are known.

    Example:
        >>> one, other = (described_run("a", [seed], [{"training": {"seed": seed, "steps": 9}}], []) for seed in (0, 1))
        >>> one["settings"] == other["settings"], one["seed"], other["seed"]
        (True, '0', '1')
    """
    plain = [{**part, "training": _without_seed(part.get("training"))} for part in settings]
    parts: list[Any] = [plain, sorted(data)]
    further = [sorted(json.dumps(dict(one), sort_keys=True) for one in members), sorted(beginnings)]
    parts += further if any(further) else []  # so that digests of all other runs stay what they were
    text = json.dumps(parts, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return {"name": name, "settings": digest, "seed": "/".join(map(str, dict.fromkeys(seeds)))}


def _without_seed(training: Any) -> Any:
    if not isinstance(training, Mapping):
        return training
    return {key: value for key, value in training.items() if key not in _NOT_OF_THE_RUN}


@dataclass(frozen=True)
class Group:
    """One number of several runs that differ only in their seed; or of a single run.

    Attributes:
        mean: Over the runs.
        sd: Their standard deviation, with n - 1; None of a single run.
        n: How many.
        stderr: Standard error of the mean: sd / sqrt(n), over seeds; of a single run that of its score, over examples.
        runs: The scores.
    """

    mean: float
    sd: float | None
    n: int
    stderr: float | None
    runs: tuple[Score, ...]

    @property
    def number(self) -> Number:
        """The mean with its standard deviation over seeds, or a single score with its standard error."""
        error = self.sd if self.n > 1 else self.stderr
        return Number(self.mean, error, whole=self.runs[0].unit == _EXACT)

    @property
    def by_attribute(self) -> dict[str, float]:
        """Means over the runs for each attribute that all of them have."""
        each = [score.by_attribute for score in self.runs]
        return {name: fmean(one[name] for one in each) for name in each[0] if all(name in one for one in each)}

    @property
    def samples(self) -> int:
        """Samples of all runs together."""
        return sum(score.n for score in self.runs)

    @property
    def by_seed(self) -> dict[str, Score]:
        """The runs whose seed is known, by it."""
        return {score.run["seed"]: score for score in self.runs if score.run}


def summed_up(runs: Sequence[Score]) -> Group:
    """Mean, standard deviation and number of some runs, of which there is at least one.

    Example:
        >>> scores = [Score("m", "q", value, 0.3, "%", "higher", 10, "own") for value in (1.0, 2.0, 3.0)]
        >>> group = summed_up(scores)
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
    """How much one group is above another.

    Attributes:
        value: The difference of the means.
        stderr: Its standard error; None where nothing is known of one of them; 0 where nothing that it comes from
            differs, so that there is no spread to tell it by.
        low: Lower end of the interval of :data:`LEVEL`; None without an error, or where that is 0.
        high: Its upper end.
        n: Seeds, where it is paired over these; else 1.
        over: What the error is over: "seeds", of which both have the same (t interval); "points", the same ones of
            two single runs (t interval); "both", two groups of other seeds (Welch's interval); "examples", as if two
            single runs had been asked different questions (normal interval).
    """

    value: float
    stderr: float | None
    low: float | None
    high: float | None
    n: int
    over: Literal["seeds", "points", "both", "examples"]

    @property
    def number(self) -> Number:
        """The difference with its interval."""
        interval = None if self.low is None or self.high is None else (self.low, self.high)
        note = " (no spread)" if self.stderr == 0 else ""
        error = self.stderr if interval else None
        return Number(self.value, error, signed=True, interval=interval, note=note)


def contrast(last: Group, first: Group) -> Contrast:
    """``last`` less ``first``: paired over seeds where both have the same ones, over what both were asked of two runs.

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
        points = paired_points(before, after)
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
    """Standard deviation with n - 1; not a number where a value is none."""
    return stdev(values) if all(map(math.isfinite, values)) else math.nan


def _paired_spread(pairs: Sequence[tuple[float, float]]) -> float:
    """That of differences; 0 where they differ by no more than such numbers are rounded by."""
    found = _spread([b - a for a, b in pairs])
    return 0.0 if found <= _ROUNDED * max(map(abs, chain(*pairs))) else found


def _apart(one: float | None, other: float | None) -> float | None:
    """Standard error of the difference of two numbers that have nothing to do with each other."""
    return None if one is None or other is None else math.hypot(one, other)


def _interval(value: float, error: float | None, freedom: float | None, n: int, over: Any) -> Contrast:
    if not error or not math.isfinite(error):
        return Contrast(value, error, None, None, n, over)
    from scipy import stats  # takes as long to load as all else here

    share = 0.5 + LEVEL / 2
    reach = error * float(stats.norm.ppf(share) if freedom is None else stats.t.ppf(share, freedom))
    return Contrast(value, error, value - reach, value + reach, n, over)


def paired_points(before: Score, after: Score) -> tuple[float, float] | None:
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
    """Whether a mean is that of a score, of whose points files keep two decimals at least."""
    return math.isclose(mean, value, rel_tol=1e-4, abs_tol=0.006)


def is_best(cell: Group | None, rivals: Sequence[Group | None]) -> bool:
    """Whether no rival beats it: the interval of :data:`LEVEL` of the difference holds 0; never without a rival.

    None is where neither way is better. Between numbers that have no error the difference itself counts; where there
    is an error and no interval, none beats the other: equal differences of two seeds are no certainty.

    The level is of each comparison alone: among eight equal rows, one of them is beaten in about every seventh table.
    """
    others = [rival for rival in rivals if rival is not None]
    if cell is None or not others or not math.isfinite(cell.mean) or cell.runs[0].better == "neither":
        return False
    higher = cell.runs[0].better == "higher"
    return not any(_beats(contrast(rival, cell), higher) for rival in others if math.isfinite(rival.mean))


def _beats(found: Contrast, higher: bool) -> bool:
    if found.low is None or found.high is None:
        low = high = found.value if found.stderr is None else 0.0
    else:
        low, high = found.low, found.high
    return low > 0 if higher else high < 0


def common_name(names: Sequence[str]) -> str:
    """The part of names that does not count seeds.

    Example:
        >>> common_name(["telbo", "telbo-seed1"]), common_name(["telbo-0", "telbo-1"]), common_name(["telbo-2"])
        ('telbo', 'telbo', 'telbo-2')
    """
    if len(set(names)) == 1:
        return names[0]
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    common = re.sub(r"[-_. ]*(?:seed|run)?[-_. ]*$", "", "".join(letters[0] for letters in alike))
    return common or names[0]
