"""Scores of many models as families of points: one measure over another, a line for each objective over its weights."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mmgen.core.errors import UsageError
from mmgen.results.groups import Group, group_runs
from mmgen.results.score import Score

__all__ = ["Axis", "Families", "Family", "Point", "families"]

_TITLES = {
    "elbo": "beta-VAE", "factor-vae": "FactorVAE", "beta-tcvae": "beta-TCVAE", "capacity": "capacity", "hfvae": "HFVAE",
}  # fmt: skip
"""What papers call models of an objective."""
_LETTERS = {"beta", "gamma", "alpha", "capacity"}
"""Weights that are named beside points where several settings of an objective differ."""


@dataclass(frozen=True)
class Axis:
    """An axis of a figure: a quantity of a metric, with its unit."""

    metric: str
    quantity: str
    unit: str
    better: str

    @property
    def label(self) -> str:
        """Return the label of the axis, with the direction that is better."""
        name = self.quantity if self.metric == "negative-elbo" else f"{self.metric}: {self.quantity}"
        return f"{name}, {self.unit}" + ("" if self.better == "neither" else f" ({self.better} is better)")


@dataclass(frozen=True)
class Point:
    """Runs that differ in their seed alone.

    Attributes:
        label: The settings of the objective by which it differs from others of its family: "beta = 4".
        key: The values of these, for the order of points.
        x: Scores of one measure.
        y: Scores of the other, of the same models.
    """

    label: str
    key: tuple[Any, ...]
    x: Group
    y: Group


@dataclass(frozen=True)
class Family:
    """Models of one objective, ordered by its weights."""

    title: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Families:
    """All families of points in one figure.

    Attributes:
        x: The axis to the right.
        y: The upward one.
        families: Lines.
        alone: How many models were left out because only one of both measures is there.
    """

    x: Axis
    y: Axis
    families: tuple[Family, ...]
    alone: int


def families(scores: Sequence[Score], x: tuple[str, str], y: str) -> Families:
    """Group models with both measures by their objective."""
    across, up = _of(scores, x[0], x[1]), _of(scores, y)
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
        objective = _objective(across[model])
        by_family.setdefault(_title(str(objective.get("name", "")), objective), []).append(model)
    found = []
    for name, models in by_family.items():
        settings = [_settings(_objective(across[model])) for model in models]
        differing = [key for key in _keys(settings) if len({one.get(key) for one in settings}) > 1]
        if not differing:
            differing = [key for key in _keys(settings) if key in _LETTERS]
        runs: dict[tuple[tuple[Any, ...], str], list[str]] = {}
        for model, one in zip(models, settings, strict=True):
            run = str(across[model].run.get("settings", ""))
            runs.setdefault((tuple(one.get(key) for key in differing), run), []).append(model)
        points = [
            Point(
                ", ".join(_setting_text(setting, value) for setting, value in zip(differing, key, strict=True)),
                tuple(map(_order, key)),
                group_runs([across[model] for model in same]),
                group_runs([up[model] for model in same]),
            )
            for (key, _), same in sorted(runs.items(), key=lambda one: (tuple(map(_order, one[0][0])), one[0][1]))
        ]
        found.append(Family(name, tuple(points)))
    first, second = across[both[0]], up[both[0]]
    return Families(
        Axis(first.metric, first.quantity, first.unit, first.better),
        Axis(second.metric, second.quantity, second.unit, second.better),
        tuple(found),
        len((across.keys() | up.keys()) - set(both)),
    )


def _of(scores: Sequence[Score], metric: str, quantity: str = "") -> dict[str, Score]:
    """Return scores of a metric by model, the last one for each."""
    own = [score for score in scores if score.metric == metric and math.isfinite(score.value)]
    quantity = quantity or (own[0].quantity if own else "")
    return {str(score.ids.get("model", "")): score for score in own if score.quantity == quantity}


def _objective(score: Score) -> dict[str, Any]:
    found = score.details.get("objective")
    return found if isinstance(found, dict) else {"name": score.run.get("name", "models")}


def _title(name: str, objective: dict[str, Any]) -> str:
    """Return the usual name of an objective for pictures alone, such as beta-VAE; else its name and modalities."""
    modalities = objective.get("modalities")
    if not isinstance(modalities, list | tuple) or len(modalities) < 2:
        return _TITLES.get(name, name)
    return f"{name} of {' and '.join(map(str, modalities))}"


def _settings(objective: dict[str, Any]) -> dict[str, Any]:
    """Return the settings in which points of an objective differ, numbers as such and others as text."""
    return {
        key: float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)
        for key, value in objective.items()
        if key not in ("name", "modalities") and value is not None
    }


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)


def _setting_text(name: str, value: Any) -> str:
    """Return a setting as ``beta = 4`` or ``groups = 2, 3``; "default" if a file lacks it."""
    said = "default" if value is None else f"{value:g}" if isinstance(value, float) else value
    return f"{name} = {said}"


def _order(value: Any) -> tuple[int, float, str]:
    """Return a sort key: numbers by size, then words, then missing values."""
    if value is None:
        return 2, 0.0, ""
    return (0, value, "") if isinstance(value, float) else (1, 0.0, value)


def _keys(settings: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for one in settings for key in one))


def _check_comparable(scores: Sequence[Score], encodings: bool = False) -> None:
    """Refuse points that were measured on other data or in another way than the rest."""
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
                f"disentanglement compares models that were measured alike, got {scores[0].metric} of {name} {shown}; "
                "name scores of one"
            )
