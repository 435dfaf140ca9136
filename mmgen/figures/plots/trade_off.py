"""The trade-off of correctness and coverage: a curve for each posterior over its weights (after VE Fig. 4a).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Fig. 4a
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from mmgen.artifacts import read_header
from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import INK, MUTED
from mmgen.figures.plots._base import PlotOptions, accepts
from mmgen.figures.plots._lines import (
    CONDITIONS,
    MARKERS,
    Line,
    Point,
    check_comparable,
    draw_legend,
    draw_lines,
    new_axes,
)
from mmgen.figures.session import Session
from mmgen.results.groups import group_runs
from mmgen.results.naming import CONDITIONAL, RETRIEVAL, PosteriorName, guidance_label
from mmgen.results.published import published_tables
from mmgen.results.score import Score, classifier_names

__all__ = ["trade_off_figure"]

_PARTNERS = {"correctness": "coverage", "precision": "recall"}
_PROTOCOLS = ("exact", "description")
"""Protocols that are preferred if there are scores of several."""
_OWN = ("prior", "own", "image", CONDITIONAL, RETRIEVAL)
"""Posteriors that need no fit, even in the file of a fitted posterior."""
_VE = {"recipe": "mnist-a", "source": "mnist", "size": 64, "binarise": True}
"""Settings of a dataset like that of VE's Fig. 4a."""
_OF_REAL = {
    "correctness": "the judge's accuracy on real pictures",
    "coverage": "all of the variety, by definition",
    "precision": "real pictures against real ones of another half",
    "recall": "the same of recall",
}
"""Meaning of the star of real pictures, by metric."""

Published = list[tuple[str, str, float, float]]


class Axis(NamedTuple):
    """Axis of a figure: the metric that it shows, its protocol, and the number of attributes in descriptions."""

    metric: str
    protocol: str
    given: int | None

    @property
    def label(self) -> str:
        """Label of the axis: the metric with its unit, and the number of attributes."""
        return f"{self.metric}, %" + (f" ({self.given} given)" if self.given is not None else "")


class Method(NamedTuple):
    """How pictures were drawn: the posterior with its weights, the family of its fit, and what was done to words and
    pictures.

    Attributes:
        named: The posterior, with its weights.
        family: Family of the fitted density; "" for others.
        remark: Whether open words stayed open, and pictures were sharpened.
    """

    named: PosteriorName
    family: str
    remark: str

    @classmethod
    def from_score(cls, score: Score) -> "Method":
        """Return the method of a score; the exact posterior has weight 1 where none is recorded."""
        named = score.named
        if named.base == "true":
            named = replace(named, text_weight=named.text_weight or 1.0)
        return cls(named, score.family, score.remark)

    @property
    def unguided(self) -> "Method":
        """The same without guidance."""
        return self._replace(named=replace(self.named, guidance=0.0, method=""))

    @property
    def line(self) -> "Method":
        """The method of all points of its line: guided by any weight, or fitted with any weight of the words."""
        if self.named.guidance:
            return self._replace(named=replace(self.named, guidance=math.inf))
        return self._replace(named=replace(self.named, text_weight=None))

    def name(self, families: bool = True) -> str:
        """Name the line of the method: "q_agg, realnvp, not completed, guided, cfg".

        Args:
            families: Whether to name the family of the fit.
        """
        weight = self.named.text_weight if self.named.guidance else None
        base = str(PosteriorName(self.named.base)) + (f"(w = {weight:g})" if weight is not None else "")
        family = f", {self.family}" if families and self.family else ""
        guided = ", guided" if self.named.guidance else ""
        return f"{base}{family}{self.remark}{guided}" + (f", {self.named.method}" if self.named.method else "")

    def find_files(self, score: Score) -> tuple[str, str]:
        """Return the content ids of a score's model and of its fitted posterior; "" where the score names none."""
        fitted = "" if self.named.base in _OWN else str(score.ids.get("aggregate") or "")
        return str(score.ids.get("model") or fitted), fitted


ByMethod = dict[Method, dict[tuple[str, str], Score]]
"""Scores by method, and then by the files of the model and the fit."""


@dataclass(frozen=True)
class TradeOff:
    """All curves of a trade-off figure, with its two axes.

    Attributes:
        y: The vertical axis.
        x: The horizontal axis.
        curves: Curves, those with the highest sum of both scores first.
        corner: Scores of real pictures (x, y); None if unknown.
        best: Points that no other one exceeds on both axes.
        unpaired: Methods left out since they lack one of the two scores.
    """

    y: Axis
    x: Axis
    curves: tuple[Line, ...]
    corner: tuple[float | None, float | None]
    best: tuple[Point, ...]
    unpaired: tuple[str, ...]


@accepts("metrics", shows="scores and models", lines=True)
def trade_off_figure(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw the trade-off of two metrics from files of scores; models tell only the recipe of the dataset.

    Raises:
        UsageError: No posterior has both scores, or they were measured in different ways.
    """
    trade = compute_trade_off(options.scores, choose_axes(options.metrics))
    published = published_points(trade, _recipe_of_datasets(sessions))
    caption = f"{_format_caption(trade)}{_name_classifiers(options.scores)}"
    return Picture(f"{trade.y.metric} and {trade.x.metric}".capitalize(), caption, draw_trade(trade, published))


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


def compute_trade_off(scores: Sequence[Score], metrics: tuple[str, str]) -> TradeOff:
    """Compute the trade-off between two metrics: a curve for each posterior with scores of both.

    Args:
        scores: Scores of all posteriors.
        metrics: The vertical and the horizontal metric.

    Raises:
        UsageError: No posterior has both scores, or they were measured in different ways.
    """
    (y, upward), (x, across) = (_scores_of_axis(scores, metric) for metric in metrics)
    ys, xs = _by_method(upward), _by_method(across)
    points: dict[Method, Point] = {}
    kept: tuple[list[list[Score]], ...] = [], []
    for method in (one for one in ys if one in xs):
        files = sorted(ys[method].keys() & xs[method].keys())
        if not files:
            continue
        sides = [[found[method][one] for one in files] for found in (ys, xs)]
        for group, side in zip(kept, sides, strict=True):
            group.append(side)
        high, far = (group_runs(side).number for side in sides)
        points[method] = Point(far, high, models=len(files))
    if not points:
        raise UsageError(
            f"trade-off needs {y.metric} and {x.metric} of the same posterior, got none with both; measure with "
            f"mmgen eval --metric {y.metric} --metric {x.metric} -o"
        )
    for group in kept:
        check_comparable("trade-off", group, {**CONDITIONS, "judge": lambda score: score.ids.get("judge")})
    of_y, of_x = ([score for side in group for score in side] for group in kept)
    corner = _score_of_real_pictures(of_x, x), _score_of_real_pictures(of_y, y)
    alone = sorted({method.name() for method in (ys.keys() | xs.keys()) - points.keys()})
    return TradeOff(y, x, _join_points(points), corner, _best_points([*points.values()]), tuple(alone))


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


def _by_method(scores: Sequence[Score]) -> ByMethod:
    """Return the last score of each method and its files, as measured by the first classifier."""
    found: ByMethod = {}
    for score in scores:
        method = Method.from_score(score)
        same, files = found.setdefault(method, {}), method.find_files(score)
        if same.get(files, score).ids.get("judge") == score.ids.get("judge"):
            same[files] = score
    for method, by_files in found.items():
        if len({model for model, _ in by_files}) < len(by_files):
            raise UsageError(
                f"trade-off got scores of several fits of {method.name()} with the same weight to one model; name "
                "scores of one fit"
            )
    return found


def _best_points(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points that no other one exceeds on both axes."""
    places = [(point.x.value, point.y.value) for point in points]
    return tuple(
        point
        for point, (x, y) in zip(points, places, strict=True)
        if not any(far >= x and high >= y and (far, high) != (x, y) for far, high in places)
    )


def _join_points(points: Mapping[Method, Point]) -> tuple[Line, ...]:
    """Join the points to a line for each method; guided lines start at the unguided point, where there is one."""
    lines: dict[Method, list[Method]] = {}
    for method in points:
        lines.setdefault(method.line, []).append(method)
    begun = set()
    for line, methods in lines.items():
        if line.named.guidance and (start := methods[0].unguided) in points:
            methods.append(start)
            begun.add(start)
    found = []
    for line, methods in lines.items():
        if len(methods) == 1 and methods[0] in begun:
            continue  # a guided line has it already
        several = len({other.family for other in points if other.named.base == line.named.base}) > 1
        methods.sort(key=lambda one: (one.named.guidance, one.named.text_weight or 0.0))
        labels = [_label_point(line, one, several) if one in (methods[0], methods[-1]) else "" for one in methods]
        joined = tuple(points[one]._replace(label=label) for one, label in zip(methods, labels, strict=True))
        found.append(Line(line.name(several), joined, bool(line.named.guidance)))
    return tuple(sorted(found, key=lambda line: -max(point.x.value + point.y.value for point in line.points)))


def _label_point(line: Method, method: Method, several: bool) -> str:
    """Return the label of a point at an end of a line: its weight, or the name of the unguided posterior."""
    named = method.named
    if line.named.guidance and not named.guidance:
        return method.line.name(several)
    if line.named.guidance:
        return guidance_label(named.guidance, named.method.split(":")[0])
    return guidance_label(named.text_weight or 0.0) if named.base == "true" else ""


def _score_of_real_pictures(scores: Sequence[Score], axis: Axis) -> float | None:
    """Return the score that real pictures get on an axis, in percent; None if the scores do not record it."""
    if axis.metric == "coverage":
        return 100.0
    right = axis.metric == "correctness"
    known = [score.real_accuracy if right else score.details.get("ceiling") for score in scores]
    values = [float(value) for value in known if isinstance(value, int | float)]
    return fmean(values) if values else None


def published_points(trade: TradeOff, recipe: str) -> Published:
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
    return (row.get("metric"), row.get("protocol", axis.protocol), row.get("given")) == axis


def _name_classifiers(scores: Sequence[Score]) -> str:
    """Name the attribute classifier that measured the shown scores, if the files hold scores by several."""
    judges: dict[str, dict[str, str]] = {}
    for score, name in zip(scores, classifier_names(scores), strict=True):
        if name:
            judges.setdefault(str(score.ids.get("dataset") or ""), {}).setdefault(str(score.ids["judge"]), name)
    first = dict.fromkeys(next(iter(names.values())) for names in judges.values())
    several = max((len(names) for names in judges.values()), default=0) > 1
    return f" Of several judges of the same pictures the first is shown: {', '.join(first)}." if several else ""


def _recipe_of_datasets(sessions: Sequence[Session]) -> str:
    """Return the recipe of the models' datasets if they are like the published dataset, else ""."""
    known = [read_header(session.group.dataset).settings for session in sessions if session.group.dataset is not None]
    known = known if not any(settings.get("content") for settings in known) else []
    alike = known and all(all(settings.get(key) == value for key, value in _VE.items()) for settings in known)
    return str(_VE["recipe"]) if alike else ""


def _format_caption(trade: TradeOff) -> str:
    counts = sorted({point.models for curve in trade.curves for point in curve.points})
    if counts[-1] > 1:
        said = [f"Means over {' or '.join(map(str, counts))} models, crosses their standard deviations."]
    else:
        said = ["Crosses are standard errors."]
    if None not in trade.corner:
        of_real = [_OF_REAL.get(axis.metric, axis.metric) for axis in (trade.y, trade.x)]
        said.append(f"The star: {', '.join(of_real)}.")
    if trade.unpaired:
        said.append(f"Left out, for only one of both was measured: {', '.join(trade.unpaired)}.")
    return " ".join(said)


def draw_trade(trade: TradeOff, published: Published) -> Figure:
    """Draw the curves of a trade-off with error bars, and the scores of real pictures as a star."""
    figure, axes = new_axes(trade.x.label, trade.y.label)
    draw_lines(axes, trade.curves)
    alone: dict[str, Any] = {"linestyle": "", "fillstyle": "none", "color": MUTED}
    if len(trade.best) < sum(len(curve.points) for curve in trade.curves):
        xs, ys = [point.x.value for point in trade.best], [point.y.value for point in trade.best]
        axes.plot(xs, ys, marker="o", markersize=13, label="none is higher on both axes", **alone)
    far, high = trade.corner
    if far is not None and high is not None:
        axes.plot(far, high, marker="*", markersize=15, color=INK, linestyle="", label="real pictures", clip_on=False)
    for number, (source, method, x, y) in enumerate(published):
        marker = MARKERS[number % len(MARKERS)]
        axes.plot(x, y, marker=marker, markersize=5, label=f"{method} ({source})", **alone)
    draw_legend(axes)
    return figure
