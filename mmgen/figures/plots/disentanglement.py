"""Disentanglement over reconstruction: a line for each objective over its weights (after Kim and Mnih, 2018, Fig. 4).

References:
    Disentangling by Factorising (Kim, Mnih, 2018), arXiv:1802.05983; the number of the figure is from memory
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.plots._base import PlotOptions, accepts
from mmgen.figures.plots._lines import CONDITIONS, Line, Point, check_comparable, draw_legend, draw_lines, new_axes
from mmgen.figures.session import Session
from mmgen.results.groups import group_runs
from mmgen.results.score import Score

__all__ = ["disentanglement"]

_TITLES = {
    "elbo": "beta-VAE", "factor-vae": "FactorVAE", "beta-tcvae": "beta-TCVAE", "capacity": "capacity", "hfvae": "HFVAE",
}  # fmt: skip
"""Names of models in papers, by objective."""
_LETTERS = {"beta", "gamma", "alpha", "capacity"}
"""Weights that label points if no setting of an objective differs."""


class Families(NamedTuple):
    """All families of points in one figure, with the labels of its axes.

    Attributes:
        x_label: Label of the horizontal axis.
        y_label: Label of the vertical axis.
        families: The models of each objective as a line, ordered by the weights of the objective; a point is the mean
            over training runs that differ only in their seed.
        unpaired: Number of models left out since they lack one of the two scores.
    """

    x_label: str
    y_label: str
    families: tuple[Line, ...]
    unpaired: int


def _axis_label(score: Score) -> str:
    """Label the axis of a score: quantity, unit, and whether lower or higher is better."""
    name = score.quantity if score.metric == "negative-elbo" else f"{score.metric}: {score.quantity}"
    return f"{name}, {score.unit}" + ("" if score.better == "neither" else f" ({score.better} is better)")


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
    check_comparable("disentanglement", [[across[model]] for model in both], _MEASURED)
    measured = {**_MEASURED, "number of examples": lambda score: score.n}
    check_comparable("disentanglement", [[up[model]] for model in both], measured)
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
                group_runs([across[model] for model in same]).number,
                group_runs([up[model] for model in same]).number,
                ", ".join(_format_setting(setting, value) for setting, value in zip(differing, key, strict=True)),
                len(same),
            )
            for (key, _), same in sorted(runs.items(), key=lambda one: (tuple(map(_sort_key, one[0][0])), one[0][1]))
        ]
        found.append(Line(name, tuple(points)))
    unpaired = len((across.keys() | up.keys()) - set(both))
    return Families(_axis_label(across[both[0]]), _axis_label(up[both[0]]), tuple(found), unpaired)


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


_MEASURED = {
    **CONDITIONS,
    "factors": lambda score: score.conditions.get("factors"),
    "protocol": lambda score: score.protocol,
}
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
    counts = sorted({point.models for point in points})
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


def draw_families(families: Families) -> Figure:
    """Draw each family as a line with markers and error bars, and label each point with its weights."""
    figure, axes = new_axes(families.x_label, families.y_label)
    draw_lines(axes, families.families)
    draw_legend(axes)
    return figure
