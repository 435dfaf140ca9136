"""Disentanglement over reconstruction: a line for each objective over its weights (after Kim and Mnih, 2018, Fig. 4).

References:
    Disentangling by Factorising (Kim, Mnih, 2018), arXiv:1802.05983; the number of the figure is from memory
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import FAINT, INK, category_colours, new_figure, style_axes
from mmgen.figures.plots._base import PlotOptions, accepts
from mmgen.figures.plots._families import Families, group_into_families
from mmgen.figures.session import Session
from mmgen.results.groups import RunGroup

__all__ = ["disentanglement"]

_MARKERS = "osD^vP"
_ACROSS = ("negative-elbo", "reconstruction error")
_UPWARD = "factor-score"


@accepts("metrics", shows="scores", lines=True)
def disentanglement(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw disentanglement over reconstruction from files of scores; models among the files are ignored.

    Raises:
        UsageError: No model has both scores, or they were measured in different ways.
    """
    if len(options.metrics) > 1:
        raise UsageError(
            f"disentanglement got --metric {' --metric '.join(options.metrics)}, expected one metric for the vertical "
            "axis; the horizontal axis is the reconstruction error"
        )
    found = group_into_families(options.scores, _ACROSS, options.metrics[0] if options.metrics else _UPWARD)
    return Picture("Disentanglement and reconstruction", _format_caption(found), draw_families(found))


def _format_caption(families: Families) -> str:
    points = [point for family in families.families for point in family.points]
    counts = sorted({group.n for point in points for group in (point.x, point.y)})
    scores = [score for point in points for score in point.x.runs]
    pictures = " or ".join(f"{count:,}" for count in sorted({score.n for score in scores}))
    said = [f"To the right -E log p(x|z) of {pictures} pictures, upward {families.y.metric}."]
    if counts == [1]:
        said.append("Bars are standard errors, over pictures and over repeats of the measure.")
    else:
        number = " or ".join(map(str, counts))
        single = ", of a single one its standard error" if 1 in counts else ""
        said.append(f"Points are means over {number} seeds, bars their standard deviations{single}.")
    if families.unpaired:
        said.append(
            f"Left out, for only one of both was measured: {families.unpaired} "
            f"{'model' if families.unpaired == 1 else 'models'}."
        )
    return " ".join(said)


def _error_bar(group: RunGroup) -> float:
    """Return half the length of an error bar: the standard deviation over seeds, or a single score's standard error."""
    return group.stderr or 0.0 if group.sd is None else group.sd


def draw_families(families: Families) -> Figure:
    """Draw each family as a line with markers and error bars, and label each point with its weights."""
    figure = new_figure(7.2, 5.0)
    axes = style_axes(figure.add_subplot(), "", families.x.label, families.y.label)
    axes.tick_params(labelsize=9)
    axes.grid(color=FAINT, linewidth=1)
    axes.set_axisbelow(True)
    colours = category_colours(len(families.families))
    for number, (family, colour) in enumerate(zip(families.families, colours, strict=True)):
        axes.errorbar(
            [point.x.mean for point in family.points],
            [point.y.mean for point in family.points],
            xerr=[_error_bar(point.x) for point in family.points],
            yerr=[_error_bar(point.y) for point in family.points],
            color=colour,
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=6,
            linewidth=1.6,
            elinewidth=1,
            label=family.title,
        )
    axes.margins(0.12)
    for family, colour in zip(families.families, colours, strict=True):
        for point in family.points:
            place = (point.x.mean, point.y.mean)
            axes.annotate(point.label, place, xytext=(5, 5), textcoords="offset points", color=colour, fontsize=9)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    return figure
