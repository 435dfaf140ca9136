"""Disentanglement over reconstruction: a line for each objective over its weights (after Kim and Mnih, 2018, Fig. 4).

References:
    Disentangling by Factorising (Kim, Mnih, 2018), arXiv:1802.05983; the number of the figure is from memory
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import FAINT, INK, category_colours, new_figure, style_axes
from mmgen.figures.plots._base import PlotOptions, accepts
from mmgen.figures.session import Session
from mmgen.results.groups import RunGroup, group_runs
from mmgen.results.score import Score

__all__ = ["disentanglement"]

_TITLES = {
    "elbo": "beta-VAE", "factor-vae": "FactorVAE", "beta-tcvae": "beta-TCVAE", "capacity": "capacity", "hfvae": "HFVAE",
}  # fmt: skip
"""Names of models in papers, by objective."""
_LETTERS = {"beta", "gamma", "alpha", "capacity"}
"""Weights that label points if no setting of an objective differs."""


@dataclass(frozen=True)
class Axis:
    """Axis of a figure: the metric and quantity that it shows, with their unit."""

    metric: str
    quantity: str
    unit: str
    better: str

    @property
    def label(self) -> str:
        """Label of the axis: quantity, unit, and whether lower or higher is better."""
        name = self.quantity if self.metric == "negative-elbo" else f"{self.metric}: {self.quantity}"
        return f"{name}, {self.unit}" + ("" if self.better == "neither" else f" ({self.better} is better)")


@dataclass(frozen=True)
class Point:
    """Point of a figure: the mean scores on both axes of training runs that differ only in their seed.

    Attributes:
        label: The settings that distinguish it from other points of its family: "beta = 4".
        key: Sort key from the values of these settings.
        x: Scores on the horizontal axis.
        y: Scores of the same models on the vertical axis.
    """

    label: str
    key: tuple[Any, ...]
    x: RunGroup
    y: RunGroup


@dataclass(frozen=True)
class Family:
    """Points of the models of one objective, ordered by the weights of the objective."""

    title: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Families:
    """All families of points in one figure, with its axes.

    Attributes:
        x: The horizontal axis.
        y: The vertical axis.
        families: Families, each drawn as a line.
        unpaired: Number of models left out since they lack one of the two scores.
    """

    x: Axis
    y: Axis
    families: tuple[Family, ...]
    unpaired: int


def group_into_families(scores: Sequence[Score], x: tuple[str, str], y: str) -> Families:
    """Group the models with scores on both axes into families by their objective.

    Args:
        scores: Scores of all models.
        x: Metric and quantity of the horizontal axis.
        y: Metric of the vertical axis.

    Raises:
        UsageError: No model has both scores, or they were measured in different ways.
    """
    across, up = _scores_by_model(scores, x[0], x[1]), _scores_by_model(scores, y)
    both = [model for model in across if model in up]
    if not both:
        options = " ".join(f"--metric {name}" for name in dict.fromkeys((x[0], y)))
        there = ", ".join(dict.fromkeys(score.metric for score in scores)) or "none"
        raise UsageError(
            f"disentanglement shows {y} over {x[1]} of the same models, got scores of {there}; measure both with "
            f"mmgen eval {options} -o"
        )
    _check_comparable([across[model] for model in both])
    _check_comparable([up[model] for model in both], encodings=True)
    by_family: dict[str, list[str]] = {}
    for model in both:
        objective = _objective_settings(across[model])
        by_family.setdefault(_family_title(str(objective.get("name", "")), objective), []).append(model)
    found = []
    for name, models in by_family.items():
        settings = [_comparable_settings(_objective_settings(across[model])) for model in models]
        differing = [key for key in _distinct_keys(settings) if len({one.get(key) for one in settings}) > 1]
        if not differing:
            differing = [key for key in _distinct_keys(settings) if key in _LETTERS]
        runs: dict[tuple[tuple[Any, ...], str], list[str]] = {}
        for model, one in zip(models, settings, strict=True):
            run = str(across[model].run.get("settings", ""))
            runs.setdefault((tuple(one.get(key) for key in differing), run), []).append(model)
        points = [
            Point(
                ", ".join(_format_setting(setting, value) for setting, value in zip(differing, key, strict=True)),
                tuple(map(_sort_key, key)),
                group_runs([across[model] for model in same]),
                group_runs([up[model] for model in same]),
            )
            for (key, _), same in sorted(runs.items(), key=lambda one: (tuple(map(_sort_key, one[0][0])), one[0][1]))
        ]
        found.append(Family(name, tuple(points)))
    first, second = across[both[0]], up[both[0]]
    return Families(
        Axis(first.metric, first.quantity, first.unit, first.better),
        Axis(second.metric, second.quantity, second.unit, second.better),
        tuple(found),
        len((across.keys() | up.keys()) - set(both)),
    )


def _scores_by_model(scores: Sequence[Score], metric: str, quantity: str = "") -> dict[str, Score]:
    """Return the last score of a metric for each model, by the model's content id."""
    own = [score for score in scores if score.metric == metric and math.isfinite(score.value)]
    quantity = quantity or (own[0].quantity if own else "")
    return {str(score.ids.get("model", "")): score for score in own if score.quantity == quantity}


def _objective_settings(score: Score) -> dict[str, Any]:
    found = score.details.get("objective")
    return found if isinstance(found, dict) else {"name": score.run.get("name", "models")}


def _family_title(name: str, objective: dict[str, Any]) -> str:
    """Return the usual name of models of an objective, such as beta-VAE, with their modalities if there are several."""
    modalities = objective.get("modalities")
    if not isinstance(modalities, list | tuple) or len(modalities) < 2:
        return _TITLES.get(name, name)
    return f"{name} of {' and '.join(map(str, modalities))}"


def _comparable_settings(objective: dict[str, Any]) -> dict[str, Any]:
    """Return those settings of an objective that can label points: numbers and text."""
    return {
        key: float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _format_value(value)
        for key, value in objective.items()
        if key not in ("name", "modalities") and value is not None
    }


def _format_value(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)


def _format_setting(name: str, value: Any) -> str:
    """Format a setting for a label, such as "beta = 4"; its value is "default" if a file lacks it."""
    text = "default" if value is None else f"{value:g}" if isinstance(value, float) else value
    return f"{name} = {text}"


def _sort_key(value: Any) -> tuple[int, float, str]:
    """Return the key that sorts values of a setting: numbers by size, then words, then missing values."""
    if value is None:
        return 2, 0.0, ""
    return (0, value, "") if isinstance(value, float) else (1, 0.0, value)


def _distinct_keys(settings: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for one in settings for key in one))


def _check_comparable(scores: Sequence[Score], encodings: bool = False) -> None:
    """Raise an error if scores were measured on different data or in different ways."""
    conditions: dict[str, Callable[[Score], Any]] = {
        "dataset": lambda score: score.ids.get("dataset"),
        "split": lambda score: score.conditions.get("split"),
        "part": lambda score: score.conditions.get("part"),
        "factors": lambda score: score.conditions.get("factors"),
        "protocol": lambda score: score.protocol,
    }
    if encodings:
        conditions["number of examples"] = lambda score: score.n
    for name, of in conditions.items():
        values = list(dict.fromkeys(str(of(score) or "") for score in scores))
        if len(values) > 1:
            shown = " and ".join(f"'{value[:40]}'" for value in values[:2])
            raise UsageError(
                f"disentanglement compares models measured in the same way, got {scores[0].metric} of {name} {shown}; "
                "give scores of one of them"
            )


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
    said = []
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
