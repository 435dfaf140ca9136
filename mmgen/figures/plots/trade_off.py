"""The trade-off of correctness and coverage: a curve for each posterior over its weights (after VE Fig. 4a).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Fig. 4a
"""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmgen.artifacts import read_header
from mmgen.figures.drawing.labels import LabelPlacer
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
    caption = f"{_format_caption(trade, published)}{_name_classifiers(options.scores)}"
    return Picture(_format_title(trade), caption, draw_trade(trade, published))


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


def _format_title(trade: TradeOff) -> str:
    words = {"correctness": "right", "coverage": "varied", "precision": "like real pictures", "recall": "varied"}
    return f"How {words.get(trade.y.metric, trade.y.metric)} and how {words.get(trade.x.metric, trade.x.metric)}"


def _format_caption(trade: TradeOff, published: Published) -> str:
    said = [
        f"Upward {trade.y.metric}{trade.y.given_text}, to the right {trade.x.metric}{trade.x.given_text}; both in %."
    ]
    if any(curve.point_label(point) for curve in trade.curves for point in curve.points):
        said.append("Along each curve the weight of guidance grows.")
    counts = sorted({point.models for curve in trade.curves for point in curve.points})
    if trade.models > 1:
        number = " or ".join(map(str, counts))
        said.append(f"Points are means over {number} models, crosses their standard deviations.")
    else:
        said.append("Crosses are standard errors.")
    if None not in trade.corner:
        real = {
            "correctness": "the judge's own accuracy on real pictures",
            "coverage": "all of the variety",
            "precision": "real pictures against real ones of another half",
            "recall": "the same of recall",
        }
        parts = [real.get(axis.metric, axis.metric) for axis in (trade.y, trade.x)]
        said.append(f"The star: {parts[0]}, {parts[1]}.")
    if len(trade.best) < sum(len(curve.points) for curve in trade.curves):
        said.append("Ringed: no other point is higher on both axes; choose among these.")
    if published:
        said.append(f"Squares in grey: {published[0][0]}, by their own judge.")
    if trade.unpaired:
        said.append(f"Left out, for only one of both was measured: {', '.join(trade.unpaired)}.")
    return " ".join(said)


def draw_trade(trade: TradeOff, published: Published) -> Figure:
    """Draw the curves of a trade-off with names and error bars, and the scores of real pictures as a star."""
    figure = new_figure(7.2, 5.0)
    axes = style_axes(figure.add_subplot(), "", trade.x.label, trade.y.label)
    axes.tick_params(labelsize=9)
    axes.grid(color=FAINT, linewidth=1)
    axes.set_axisbelow(True)
    colours = category_colours(len(trade.curves))
    for number, (curve, colour) in enumerate(zip(trade.curves, colours, strict=True)):
        _draw_curve(axes, curve, colour, number)
    axes.plot(
        [point.x for point in trade.best],
        [point.y for point in trade.best],
        marker="o",
        markersize=13,
        color=MUTED,
        fillstyle="none",
        linestyle="",
        zorder=3,
    )
    far, high = trade.corner
    if high is not None:
        axes.axhline(high, color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    if far is not None:
        axes.axvline(far, color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    if far is not None and high is not None:
        axes.plot(far, high, marker="*", markersize=15, color=INK, linestyle="", zorder=15, clip_on=False)
    for _, _, x, y in published:
        axes.plot(x, y, marker="s", markersize=5, color=MUTED, fillstyle="none", linestyle="", zorder=4)
    axes.margins(0.1)
    axes.autoscale_view()
    axes.set_xlim(right=min(axes.get_xlim()[1], 101.5))
    axes.set_ylim(top=min(axes.get_ylim()[1], 101.5))
    _add_labels(axes, trade, colours, published)
    return figure


def _draw_curve(axes: Axes, curve: Curve, colour: str, number: int) -> None:
    xs, ys = [point.x for point in curve.points], [point.y for point in curve.points]
    main = curve.guided
    axes.errorbar(
        xs,
        ys,
        xerr=[point.x_error or 0.0 for point in curve.points],
        yerr=[point.y_error or 0.0 for point in curve.points],
        color=colour,
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=7 if main else 5.5,
        linewidth=2.2 if main else 1.5,
        linestyle=_LINES[number % len(_LINES)],
        elinewidth=1,
        zorder=10 - 0.1 * number,
    )


def _add_labels(axes: Axes, trade: TradeOff, colours: Sequence[str], published: Published) -> None:
    """Label the curves, then the star of real pictures, then weights of guidance where there is room."""
    labels = LabelPlacer(axes)
    for curve in trade.curves:
        labels.keep_free([point.x for point in curve.points], [point.y for point in curve.points])
        for point in curve.points:
            labels.keep_free([point.x], [point.y], 5)
            across, up = point.x_error or 0.0, point.y_error or 0.0
            labels.keep_free([point.x - across, point.x + across], [point.y] * 2, 1)
            labels.keep_free([point.x] * 2, [point.y - up, point.y + up], 1)
    for _, _, x, y in published:
        labels.keep_free([x], [y], 4)
    far, high = trade.corner
    if far is not None and high is not None:
        labels.keep_free([far], [high], 8)
        labels.keep_free(axes.get_xlim(), [high, high], 1)
        labels.keep_free([far, far], axes.get_ylim(), 1)
        labels.place_label(far, high, "real pictures", INK, bold=True)
    for curve, colour in zip(trade.curves, colours, strict=True):
        end = curve.points[-1]
        labels.place_label(end.x, end.y, f"{curve.label}", colour, bold=True)
    for source, method, x, y in published:
        labels.place_label(x, y, f"{method} ({source})", MUTED)
    said: set[tuple[float, float, str]] = set()  # guided curves of one posterior begin together
    for curve in trade.curves:
        ends = (curve.points[0], curve.points[-1])
        for point in sorted(curve.points, key=lambda point: point not in ends):
            told = curve.point_label(point)
            if told and (point.x, point.y, told) not in said:
                said.add((point.x, point.y, told))
                labels.place_label(point.x, point.y, told, INK, required=point in ends)
