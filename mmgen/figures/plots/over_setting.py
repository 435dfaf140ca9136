"""Scores over a setting of the objective, such as the number of sub-sampled terms (WG Section 5).

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5, "Effect of number of ELBO terms"
"""

import math
from collections.abc import Sequence
from statistics import fmean

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import SMALL, new_figure, style_axes
from mmgen.figures.plots._base import PlotOptions, accepts
from mmgen.figures.plots._lines import Line, Point, check_comparable, draw_legend, draw_lines
from mmgen.figures.session import Session
from mmgen.results.groups import contrast, group_runs
from mmgen.results.number import Number
from mmgen.results.score import Score

__all__ = ["over_setting"]

_VARIANCE = "log_weight_variance"
_Lines = dict[str, dict[float, list[Score]]]
"""Scores by what they measure, then by the value of the setting."""


def group_by_setting(scores: Sequence[Score], metric: str, setting: str) -> tuple[str, _Lines]:
    """Group the scores of a metric by what they measure, then by the value of a setting of their model's objective.

    Args:
        scores: Scores of all models.
        metric: Name of the metric.
        setting: Name of the setting, a number; "" for the one that differs.

    Returns:
        Name of the setting, and the groups.

    Raises:
        UsageError: No score of the metric has the setting, several settings differ, or data differ.
    """
    known = [(score, _objective_numbers(score)) for score in scores if score.metric == metric]
    numbers = sorted({name for _, one in known for name in one})
    differing = [name for name in numbers if len({one.get(name) for _, one in known}) > 1]
    if setting and setting not in numbers:
        raise UsageError(format_unknown_name("setting of these objectives", setting, numbers))
    if not setting and len(differing) != 1:
        raise UsageError(
            f"over-setting shows {metric} over one setting of the objective, got {len(known)} such scores, which "
            f"differ in {' and '.join(differing) or 'none'}; name scores of several models, and the setting with --by"
        )
    chosen, lines = setting or differing[0], _Lines()
    for score, one in known:
        if chosen in one and math.isfinite(score.value):
            name = ", ".join(filter(None, (score.quantity, score.protocol, score.posterior)))
            lines.setdefault(name, {}).setdefault(one[chosen], []).append(score)
    for line in lines.values():
        check_comparable("over-setting", list(line.values()))
    return chosen, lines


def _objective_numbers(score: Score) -> dict[str, float]:
    objective = score.details.get("objective")
    settings = objective if isinstance(objective, dict) else {}
    return {name: float(value) for name, value in settings.items() if isinstance(value, int | float)}


def _leave_out_bounds(lines: _Lines) -> _Lines:
    """Leave out one-sample bounds of what is measured by importance weights as well."""
    measured = {name for name in lines if ", bound" not in name}
    return {
        name: line
        for name, line in lines.items()
        if name in measured or name.replace("bound", "importance") not in measured
    }


def _changes(line: dict[float, list[Score]]) -> list[Number]:
    """Return the difference of each value's mean score from that of the smallest value, with its error."""
    first, *others = (group_runs(line[value]) for value in sorted(line))
    return [Number(0.0), *(contrast(other, first).number for other in others)]


def _mean_variances(line: dict[float, list[Score]]) -> list[Number]:
    return [Number(fmean(float(score.details[_VARIANCE]) for score in line[value])) for value in sorted(line)]


def draw_panels(lines: _Lines, metric: str, setting: str) -> Figure:
    """Draw how scores change over a setting, its values evenly spaced, and beside it the variances of log weights."""
    lines = _leave_out_bounds(lines)
    values = sorted({value for line in lines.values() for value in line})
    weighted = {
        name: line
        for name, line in lines.items()
        if all(_VARIANCE in score.details for scores in line.values() for score in scores)
    }
    unit = next(score.unit for line in lines.values() for scores in line.values() for score in scores)
    panels = [(f"{metric} less that at {values[0]:g}, {unit}", lines, _changes)]
    panels += [("variance of log importance weights", weighted, _mean_variances)] * bool(weighted)
    figure = new_figure(5.6 * len(panels), 4.4)
    for place, (label, shown, measure) in enumerate(panels):
        axes = style_axes(figure.add_subplot(1, len(panels), place + 1), "", setting, label)
        axes.tick_params(labelsize=SMALL)
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        if measure is _mean_variances:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:,g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
        points = {name: zip(sorted(line), measure(line), strict=True) for name, line in shown.items()}
        draw_lines(
            axes,
            [Line(name, tuple(Point(Number(values.index(x)), y) for x, y in line)) for name, line in points.items()],
        )
    draw_legend(axes)
    return figure


@accepts("metrics", "by", shows="scores", lines=True)
def over_setting(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw scores over a setting of the objective from files of scores; models among the files are ignored.

    Raises:
        UsageError: No score has the setting, or several settings differ.
    """
    if len(options.metrics) > 1:
        raise UsageError(f"over-setting got --metric {' --metric '.join(options.metrics)}, expected one")
    metric = options.metrics[0] if options.metrics else "log-likelihood"
    setting, lines = group_by_setting(options.scores, metric, options.by)
    several = any(len(scores) > 1 for line in lines.values() for scores in line.values())
    paired = "over models" if several else "point by point where both have the points"
    caption = f"Bars are standard errors of the differences, {paired}."
    return Picture(f"{metric} over {setting}", caption, draw_panels(lines, metric, setting))
