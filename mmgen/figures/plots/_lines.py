"""Lines with errors over scores: their points, the check that these can be compared, and how they are drawn."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.style import FAINT, INK, SMALL, category_colours, new_figure, style_axes
from mmgen.results.number import Number
from mmgen.results.score import Score

MARKERS = "osD^vP*XphH"
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)))

Condition = Callable[[Score], Any]

CONDITIONS: Mapping[str, Condition] = {
    "split": lambda score: score.conditions.get("split"),
    "part": lambda score: score.conditions.get("part"),
    "dataset": lambda score: score.ids.get("dataset"),
}
"""Conditions that all points of a figure share, by name."""


class Point(NamedTuple):
    """Point of a line.

    Attributes:
        x: Number on the horizontal axis, with its error.
        y: Number on the vertical axis.
        label: Text beside it; "" for none.
        models: Number of models behind it.
        by_seed: Numbers of the single seeds on the vertical axis, which are drawn as dots.
    """

    x: Number
    y: Number
    label: str = ""
    models: int = 1
    by_seed: tuple[float, ...] = ()


class Line(NamedTuple):
    """Line of a figure: its name in the legend, its points in order, and whether it is drawn thicker than others."""

    name: str
    points: tuple[Point, ...]
    is_main: bool = False


def check_comparable(
    figure: str, points: Sequence[Sequence[Score]], conditions: Mapping[str, Condition] = CONDITIONS
) -> None:
    """Raise an error if the scores of points were measured on different data or in different ways.

    Args:
        figure: Name of the figure.
        points: The scores behind each point, such as those of several seeds, each with data and a judge of its own.
        conditions: What must be equal at all points, by name.

    Raises:
        UsageError: Points differ in a condition.
    """
    for name, of in conditions.items():
        each = {frozenset(str(of(score) or "") for score in scores) for scores in points}
        if len(each) > 1:
            values = sorted({value[:12] or "none" for group in each for value in group})
            raise UsageError(
                f"{figure} compares scores of {points[0][0].metric} with the same {name}, got several "
                f"({', '.join(values)}); name scores measured in the same way"
            )


def new_axes(x_label: str, y_label: str, width: float = 7.2, height: float = 5.0) -> tuple[Figure, Axes]:
    """Return a figure of this size in inches and its axes, with a faint grid."""
    figure = new_figure(width, height)
    axes = style_axes(figure.add_subplot(), "", x_label, y_label)
    axes.tick_params(labelsize=SMALL)
    axes.grid(color=FAINT, linewidth=1)
    axes.set_axisbelow(True)
    return figure, axes


def draw_lines(axes: Axes, lines: Sequence[Line]) -> None:
    """Draw lines with error bars, each by its own colour, marker and dashes; labels and dots in its colour."""
    for number, (line, colour) in enumerate(zip(lines, category_colours(len(lines)), strict=True)):
        axes.errorbar(
            [point.x.value for point in line.points],
            [point.y.value for point in line.points],
            xerr=[point.x.error or 0.0 for point in line.points]
            if any(point.x.error for point in line.points)
            else None,
            yerr=[point.y.error or 0.0 for point in line.points],
            color=colour,
            marker=MARKERS[number % len(MARKERS)],
            markersize=7 if line.is_main else 5.5,
            linewidth=2.4 if line.is_main else 1.5,
            linestyle=_LINES[number % len(_LINES)],
            elinewidth=1,
            capsize=2,
            zorder=10 - 0.1 * number,
            label=line.name,
        )
        beside: dict[str, Any] = {"xytext": (6, 6), "textcoords": "offset points", "fontsize": SMALL, "zorder": 20}
        for point in line.points:
            if point.label:
                axes.annotate(point.label, (point.x.value, point.y.value), color=colour, **beside)
            places = [point.x.value] * len(point.by_seed)
            axes.scatter(places, point.by_seed, s=12, color=colour, edgecolors="white", linewidths=0.5, zorder=11)
    axes.margins(0.1)


def draw_legend(axes: Axes, **place: Any) -> None:
    """Draw the legend of all that has a name."""
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=INK, **place)
