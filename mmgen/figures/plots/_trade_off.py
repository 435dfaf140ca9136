"""The trade-off between two metrics of the same pictures, as curves over the weight of guidance."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.results.groups import group_runs
from mmgen.results.naming import RETRIEVAL, PosteriorName, guidance_label
from mmgen.results.published import published_tables
from mmgen.results.score import Score

_PARTNERS = {"correctness": "coverage", "precision": "recall"}
_PROTOCOLS = ("exact", "description")
"""Protocols that are preferred if there are scores of several."""
_OWN = ("prior", "own", "image", RETRIEVAL)
"""Posteriors that need no fit, even in the file of a fitted posterior."""


@dataclass(frozen=True)
class Axis:
    """Axis of a figure: the metric that it shows, its protocol, and the number of attributes in descriptions."""

    metric: str
    protocol: str
    given: int | None

    @property
    def label(self) -> str:
        """Label of the axis: the metric with its unit, and the number of attributes."""
        return f"{self.metric}, %{self.given_text}"

    @property
    def given_text(self) -> str:
        """Number of attributes in a description, in brackets for a label; "" if it is unknown."""
        return f" ({self.given} given)" if self.given is not None else ""


@dataclass(frozen=True)
class Point:
    """Scores on both axes of one posterior with one weight of guidance.

    Attributes:
        weight: Power of p(y|z); 0 without guidance.
        x: Score on the horizontal axis, mean over models, in percent.
        y: Score on the vertical axis.
        x_error: Standard deviation over models, or standard error of a single one; None without one.
        y_error: The same for the vertical axis.
        models: Number of models.
    """

    weight: float
    x: float
    y: float
    x_error: float | None
    y_error: float | None
    models: int


@dataclass(frozen=True)
class Curve:
    """Curve of one posterior: its points, in order of the weight of guidance."""

    posterior: str
    guided: bool
    points: tuple[Point, ...]
    text_weight: float | None = None
    method: str = ""
    family: str = ""

    @property
    def name(self) -> str:
        """Name of the unguided posterior, with its family if there are several."""
        return str(PosteriorName(self.posterior)) + (f", {self.family}" if self.family else "")

    @property
    def label(self) -> str:
        """Name of the curve: that of the posterior."""
        name = self.name
        if self.text_weight is not None:
            name += f"(w = {self.text_weight:g})"
        return name + (", guided" if self.guided else "") + (f", {self.method}" if self.method else "")

    def point_label(self, point: Point) -> str:
        """Format the label of a point of the curve: its weight of guidance, or the name of the unguided posterior."""
        if self.guided and not point.weight:
            return self.name
        return (
            guidance_label(point.weight, self.method.split(":")[0]) if self.guided or self.posterior == "true" else ""
        )


@dataclass(frozen=True)
class TradeOff:
    """All curves of a trade-off figure, with its two axes.

    Attributes:
        y: The vertical axis.
        x: The horizontal axis.
        curves: Curves, those with the highest sum of both scores first.
        corner: Scores of real pictures (x, y); None if unknown.
        best: Points that no other one exceeds on both axes.
        models: Largest number of models behind a point.
        unpaired: Posteriors left out since they lack one of the two scores.
    """

    y: Axis
    x: Axis
    curves: tuple[Curve, ...]
    corner: tuple[float | None, float | None]
    best: tuple[Point, ...]
    models: int
    unpaired: tuple[str, ...]


def choose_axes(metrics: Sequence[str]) -> tuple[str, str]:
    """Return the metrics of the vertical and the horizontal axis, by default correctness and coverage."""
    if not metrics:
        return "correctness", "coverage"
    if len(metrics) > 2 or len(set(metrics)) < len(metrics):
        raise UsageError(
            f"trade-off got --metric {' --metric '.join(metrics)}, expected two different ones, the vertical axis first"
        )
    if len(metrics) == 2:
        return metrics[0], metrics[1]
    if metrics[0] not in _PARTNERS:
        raise UsageError(
            f"trade-off got one --metric {metrics[0]}, expected correctness, precision, or two, the vertical axis first"
        )
    return metrics[0], _PARTNERS[metrics[0]]


Key = tuple[str, float | None, float, str, str]
"""Posterior, text weight (of q_true only), weight of guidance, method of guidance, family of the fitted density."""


def _posterior_key(score: Score) -> Key:
    posterior = score.base if score.posterior == "guided" else score.posterior
    weight = score.text_weight or 1.0 if posterior == "true" else None
    method = ", ".join(filter(None, [score.guidance_method, "not completed" if score.as_given else ""]))
    return posterior, weight, score.guidance or 0.0, method, score.family


def _model_and_fit(score: Score, key: Key) -> tuple[str, str]:
    """Return the content ids of a score's model and of its fitted posterior; "" where the score names none."""
    fitted = "" if key[0] in _OWN else str(score.ids.get("aggregate") or "")
    return str(score.ids.get("model") or fitted), fitted


def _scores_of_axis(scores: Sequence[Score], metric: str) -> tuple[Axis, list[Score]]:
    """Return an axis for a metric and its scores: those of one protocol whose descriptions have the most attributes."""
    matching = [score for score in scores if score.metric == metric and math.isfinite(score.value)]
    if not matching:
        there = ", ".join(dict.fromkeys(score.metric for score in scores)) or "none"
        raise UsageError(
            f"trade-off shows {metric}, got scores of {there}; measure it with mmgen eval --metric {metric} -o"
        )
    if matching[0].unit != "%" or matching[0].better != "higher":
        raise UsageError(
            f"trade-off shows metrics in % whose higher values are better, got {metric} in {matching[0].unit}; choose "
            "another --metric"
        )
    protocols = list(dict.fromkeys(score.protocol for score in matching))
    protocol = next((name for name in _PROTOCOLS if name in protocols), protocols[0])
    matching = [score for score in matching if score.protocol == protocol]
    given = max((score.given for score in matching if score.given is not None), default=None)
    return Axis(metric, protocol, given), [score for score in matching if score.given == given]


ScoresByPosterior = dict[Key, dict[tuple[str, str], Score]]


def _by_posterior(scores: Sequence[Score]) -> ScoresByPosterior:
    """Return the last score of each posterior and its files, as measured by the first classifier."""
    found: ScoresByPosterior = {}
    for score in scores:
        key = _posterior_key(score)
        same = found.setdefault(key, {}).setdefault(_model_and_fit(score, key), score)
        if same.ids.get("judge") == score.ids.get("judge"):
            found[key][_model_and_fit(score, key)] = score
    for key, by_files in found.items():
        models = [model for model, _ in by_files]
        if len(set(models)) < len(models):
            name = Curve(key[0], bool(key[2]), (), method=key[3], family=key[4]).label
            raise UsageError(
                f"trade-off got scores of several fits of {name} with the same weight to one model; name scores of one "
                "fit"
            )
    return found


def _check_comparable(groups: Sequence[ScoresByPosterior]) -> None:
    """Raise an error if scores were measured on different data or by different attribute classifiers."""
    for name, of in (
        ("split", lambda score: score.conditions.get("split", "")),
        ("part", lambda score: score.conditions.get("part", "")),
        ("dataset", lambda score: str(score.ids.get("dataset") or "")),
        ("judge", lambda score: str(score.ids.get("judge") or "")),
    ):
        each = {frozenset(of(score) for score in by_files.values()) for found in groups for by_files in found.values()}
        if len(each) > 1:
            values = sorted({value[:12] or "none" for group in each for value in group})
            raise UsageError(
                f"trade-off compares posteriors with the same {name}, got several ({', '.join(values)}); name scores "
                "measured in the same way"
            )


def compute_trade_off(scores: Sequence[Score], metrics: tuple[str, str]) -> TradeOff:
    """Compute the trade-off between two metrics: a curve for each posterior with scores of both.

    Args:
        scores: Scores of all posteriors.
        metrics: The vertical and the horizontal metric.

    Raises:
        UsageError: No posterior has both scores, or they were measured in different ways.
    """
    (y, upward), (x, across) = (_scores_of_axis(scores, metric) for metric in metrics)
    ys, xs = _by_posterior(upward), _by_posterior(across)
    points: dict[Key, Point] = {}
    kept: list[ScoresByPosterior] = [{}, {}]
    for key in ys.keys() & xs.keys():
        files = sorted(ys[key].keys() & xs[key].keys())
        if not files:
            continue
        sides = [{one: found[key][one] for one in files} for found in (ys, xs)]
        for group, side in zip(kept, sides, strict=True):
            group[key] = side
        high, far = (group_runs(list(side.values())).number for side in sides)
        weight = (key[1] or 0.0) if key[0] == "true" and not key[2] else key[2]
        points[key] = Point(weight, far.value, high.value, far.error, high.error, len(files))
    if not points:
        raise UsageError(
            f"trade-off needs {y.metric} and {x.metric} of the same posterior, got none with both; measure with "
            f"mmgen eval --metric {y.metric} --metric {x.metric} -o"
        )
    for group in kept:
        _check_comparable([group])
    alone = sorted(
        {
            Curve(key[0], bool(key[2]), (), method=key[3], family=key[4]).label
            for key in (ys.keys() | xs.keys()) - points.keys()
        }
    )
    every = [score for group in kept for by_files in group.values() for score in by_files.values()]
    corner = (_score_of_real_pictures(every, x), _score_of_real_pictures(every, y))
    most = max(point.models for point in points.values())
    return TradeOff(y, x, _curves(points), corner, _best_points([*points.values()]), most, tuple(alone))


def _best_points(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points that no other one exceeds on both axes."""
    return tuple(
        point
        for point in points
        if not any(
            other.x >= point.x and other.y >= point.y and (other.x, other.y) != (point.x, point.y) for other in points
        )
    )


def _curves(points: Mapping[Key, Point]) -> tuple[Curve, ...]:
    """Join the points to a curve for each posterior; guided curves start at the unguided point."""
    curves = []
    for posterior, family in sorted({(key[0], key[4]) for key in points}):
        own = {key: point for key, point in points.items() if (key[0], key[4]) == (posterior, family)}
        several = len({key[4] for key in points if key[0] == posterior}) > 1
        shown = family if several else ""
        if posterior == "true":
            plain = [point for key, point in own.items() if not key[2]]
            if plain:
                curves.append(Curve(posterior, False, _sort_by_weight(plain), family=shown))
            for weight, how in sorted({(key[1] or 0.0, key[3]) for key in own if key[2]}):
                guided = [point for key, point in own.items() if key[1] == weight and key[2] and key[3] == how]
                curves.append(Curve(posterior, True, _sort_by_weight(guided), weight, how, shown))
        else:
            for how in sorted({key[3] for key in own if key[2]} or {""}):
                line = [point for key, point in own.items() if not key[2] or key[3] == how]
                is_guided = any(key[2] for key in own)
                curves.append(Curve(posterior, is_guided, _sort_by_weight(line), method=how, family=shown))
    return tuple(sorted(curves, key=lambda curve: -max(point.x + point.y for point in curve.points)))


def _sort_by_weight(points: Sequence[Point]) -> tuple[Point, ...]:
    return tuple(sorted(points, key=lambda point: point.weight))


def _score_of_real_pictures(scores: Sequence[Score], axis: Axis) -> float | None:
    """Return the score that real pictures get on an axis, in percent; None if the scores do not record it."""
    if axis.metric == "coverage":
        return 100.0
    own = [score for score in scores if score.metric == axis.metric]
    if axis.metric == "correctness":
        known = [score.real_accuracy for score in own]
    else:
        known = [score.details.get("ceiling") for score in own]
    values = [float(value) for value in known if isinstance(value, int | float)]
    return float(np.mean(values)) if values else None


def published_points(trade: TradeOff, recipe: str) -> list[tuple[str, str, float, float]]:
    """Return published points of the same dataset recipe and protocols, each as (source, method, x, y)."""
    found = []
    for table in published_tables():
        if not recipe or table.recipe != recipe:
            continue
        sides = [next((row for row in table.row if _belongs_to(row, axis)), None) for axis in (trade.x, trade.y)]
        if sides[0] is None or sides[1] is None:
            continue
        for method, far, high in zip(table.columns, sides[0]["values"], sides[1]["values"], strict=True):
            if far != "" and high != "":
                found.append((table.source, method, float(far), float(high)))
    return found


def _belongs_to(row: Mapping[str, object], axis: Axis) -> bool:
    """Return whether a row of a published table has the metric and protocol of an axis."""
    protocol = row.get("protocol", axis.protocol)
    return (row.get("metric"), protocol, row.get("given")) == (axis.metric, axis.protocol, axis.given)
