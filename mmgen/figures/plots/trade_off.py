"""The trade-off of correctness and coverage: a curve for each posterior over its weights (after VE Fig. 4a).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Fig. 4a
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmgen.artifacts import read_header
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import FAINT, INK, MUTED, category_colours, new_figure, style_axes
from mmgen.figures.plots._base import PlotOptions, accepts
from mmgen.figures.plots._trade_off import Curve, TradeOff, choose_axes, compute_trade_off, published_points
from mmgen.figures.session import Session
from mmgen.results.score import Score, classifier_names

__all__ = ["trade_off_figure"]

_MARKERS = "osD^vP"
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)))
_VE = {"recipe": "mnist-a", "source": "mnist", "size": 64, "binarise": True}
"""Settings of a dataset like that of VE's Fig. 4a."""

Published = list[tuple[str, str, float, float]]


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


_OF_REAL = {
    "correctness": "the judge's accuracy on real pictures",
    "coverage": "all of the variety, by definition",
    "precision": "real pictures against real ones of another half",
    "recall": "the same of recall",
}
"""Meaning of the star of real pictures, by metric."""


def _format_caption(trade: TradeOff) -> str:
    counts = sorted({point.models for curve in trade.curves for point in curve.points})
    said = []
    if trade.models > 1:
        said.append(f"Means over {' or '.join(map(str, counts))} models, crosses their standard deviations.")
    else:
        said.append("Crosses are standard errors.")
    if None not in trade.corner:
        of_real = [_OF_REAL.get(axis.metric, axis.metric) for axis in (trade.y, trade.x)]
        said.append(f"The star: {', '.join(of_real)}.")
    if trade.unpaired:
        said.append(f"Left out, for only one of both was measured: {', '.join(trade.unpaired)}.")
    return " ".join(said)


def draw_trade(trade: TradeOff, published: Published) -> Figure:
    """Draw the curves of a trade-off with error bars, and the scores of real pictures as a star."""
    figure = new_figure(7.2, 5.0)
    axes = style_axes(figure.add_subplot(), "", trade.x.label, trade.y.label)
    axes.tick_params(labelsize=9)
    axes.grid(color=FAINT, linewidth=1)
    axes.set_axisbelow(True)
    colours = category_colours(len(trade.curves))
    for number, (curve, colour) in enumerate(zip(trade.curves, colours, strict=True)):
        _draw_curve(axes, curve, colour, number)
    alone: dict[str, Any] = {"linestyle": "", "fillstyle": "none", "color": MUTED}
    if len(trade.best) < sum(len(curve.points) for curve in trade.curves):
        xs, ys = [point.x for point in trade.best], [point.y for point in trade.best]
        axes.plot(xs, ys, marker="o", markersize=13, label="none is higher on both axes", **alone)
    far, high = trade.corner
    if far is not None and high is not None:
        axes.plot(far, high, marker="*", markersize=15, color=INK, linestyle="", label="real pictures", clip_on=False)
    for number, (source, method, x, y) in enumerate(published):
        marker = _MARKERS[number % len(_MARKERS)]
        axes.plot(x, y, marker=marker, markersize=5, label=f"{method} ({source})", **alone)
    axes.margins(0.1)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    return figure


def _draw_curve(axes: Axes, curve: Curve, colour: str, number: int) -> None:
    """Draw a curve, with its weights of guidance at both ends."""
    xs, ys = [point.x for point in curve.points], [point.y for point in curve.points]
    axes.errorbar(
        xs,
        ys,
        xerr=[point.x_error or 0.0 for point in curve.points],
        yerr=[point.y_error or 0.0 for point in curve.points],
        color=colour,
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=7 if curve.guided else 5.5,
        linewidth=2.2 if curve.guided else 1.5,
        linestyle=_LINES[number % len(_LINES)],
        elinewidth=1,
        zorder=10 - 0.1 * number,
        label=curve.label,
    )
    for point in (curve.points[0], curve.points[-1])[: len(curve.points)]:
        text, place = curve.point_label(point), (point.x, point.y)
        axes.annotate(text, place, xytext=(6, 6), textcoords="offset points", color=colour, fontsize=9, zorder=20)
