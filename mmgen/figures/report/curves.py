"""Learning curves, drawn from the training log (JSON lines) beside a checkpoint."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmgen.core.errors import ArtifactError, reason_of
from mmgen.core.parsing import MAX_LOG_BYTES, MalformedError, parse_json, read_text
from mmgen.figures.drawing.style import MUTED, SMALL, category_colours, default_style, new_figure, style_axes


@dataclass(frozen=True)
class TrainingLog:
    """Training log as arrays: T lines on training and V lines on validation.

    Attributes:
        name: Label of the curves.
        steps: Training steps, [T].
        seconds: Seconds since the start, [T].
        bound: Training bound of a batch, nats per example, [T].
        terms: Terms of the bound by name, each [T]; NaN if a line lacks one.
        rate: Examples per second, [T].
        learning_rate: Learning rate, [T].
        gradient_norm: Norm of the gradient before clipping, [T].
        validation_steps: Training steps of validation, [V].
        validation: Validation bound, nats per example, [V].
        validation_stderr: Its standard error, [V]; NaN if a line lacks it.
    """

    name: str
    steps: np.ndarray
    seconds: np.ndarray
    bound: np.ndarray
    terms: dict[str, np.ndarray] = field(default_factory=dict)
    rate: np.ndarray = field(default_factory=lambda: np.zeros(0))
    learning_rate: np.ndarray = field(default_factory=lambda: np.zeros(0))
    gradient_norm: np.ndarray = field(default_factory=lambda: np.zeros(0))
    validation_steps: np.ndarray = field(default_factory=lambda: np.zeros(0))
    validation: np.ndarray = field(default_factory=lambda: np.zeros(0))
    validation_stderr: np.ndarray = field(default_factory=lambda: np.zeros(0))


def _to_float(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _read_records(path: Path) -> list[dict[str, Any]]:
    try:
        lines = read_text(path, MAX_LOG_BYTES).removesuffix("\n").split("\n")
    except OSError as error:
        raise ArtifactError(f"cannot read the log {path}: {reason_of(error)}; check the path") from None
    except MalformedError as error:
        raise ArtifactError(f"{path} is not a training log (JSON lines): {error}; check the path") from None
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = parse_json(line)
        except MalformedError as error:
            if number == len(lines):  # a killed run may leave half a line
                break
            raise ArtifactError(
                f"{path} is not a training log: line {number} is not JSON ({error}); check the path"
            ) from None
        if not isinstance(record, dict) or not isinstance(record.get("step"), int):
            raise ArtifactError(
                f"{path} is not a training log: line {number} has no step; give the .log.jsonl file beside a checkpoint"
            )
        records.append(record)
    return records


def _inner_table(record: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the inner table ``key`` of a record; {} if there is none."""
    table = record.get(key)
    return table if isinstance(table, dict) else {}


def _flatten_players(record: dict[str, Any]) -> dict[str, Any]:
    """Flatten the record of a run with several players: numbers of the first, and those of the others as terms."""
    players = {name: _inner_table(_inner_table(record, "players"), name) for name in _inner_table(record, "players")}
    if not players:
        return record
    first, *others = players
    further: dict[str, Any] = {}
    for name in others:
        figures = {"bound": players[name].get("bound"), **_inner_table(players[name], "terms")}
        further |= {f"{name}/{key}": figure for key, figure in figures.items()}
    return record | players[first] | {"terms": _inner_table(players[first], "terms") | further}


def read_log(path: Path, name: str = "") -> TrainingLog:
    """Read a training log: a file of JSON lines, one for each logged step.

    Args:
        path: JSON lines: ``{"step", "seconds", "bound", "terms", "rate", "learning_rate", "gradient_norm"}`` for
            training, ``{"step", "validation": {"bound", "stderr"}}`` for validation. A line of several players has
            the figures of each under ``"players"``: those of the first are the curves, those of others are terms. An
            unfinished last line is skipped.
        name: Label of the curves; by default the file's stem.

    Raises:
        ArtifactError: The file cannot be read, or is no training log.
    """
    records = [_flatten_players(record) for record in _read_records(path)]
    training = [record for record in records if "bound" in record]
    checks = [record for record in records if isinstance(record.get("validation"), dict)]

    def column(rows: Sequence[dict[str, Any]], key: str) -> np.ndarray:
        return np.array([_to_float(row.get(key)) for row in rows])

    terms = [_inner_table(record, "terms") for record in training]
    names = list(dict.fromkeys(key for row in terms for key in row))
    # Where nothing selects the best weights, the bound is one of the terms.
    validation = [_inner_table(record["validation"], "terms") | record["validation"] for record in checks]
    return TrainingLog(
        name or path.name.removesuffix(".jsonl").removesuffix(".log"),
        column(training, "step"),
        column(training, "seconds"),
        column(training, "bound"),
        {key: column(terms, key) for key in names},
        column(training, "rate"),
        column(training, "learning_rate"),
        column(training, "gradient_norm"),
        column(checks, "step"),
        column(validation, "bound"),
        column(validation, "stderr"),
    )


def _settled_range(values: Sequence[np.ndarray]) -> tuple[float, float] | None:
    """Return the range (low, high) of an axis that shows curves after their steep start; None without values."""
    settled = [v[np.isfinite(v)][len(v) // 20 :] for v in values]
    joined = np.concatenate([v for v in settled if len(v)] or [np.zeros(0)])
    if not len(joined):
        return None
    low, high = np.percentile(joined, [10, 100])
    low = min([low, *(v[-1] for v in settled if len(v))])
    margin = 0.06 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _smooth(values: np.ndarray) -> np.ndarray:
    """Smooth a curve by a running mean over about a fortieth of its length, ignoring NaN."""
    if not len(values):
        return values
    width = max(1, len(values) // 40)
    good = np.isfinite(values)
    kernel = np.ones(width)
    total = np.convolve(np.where(good, values, 0.0), kernel, "same")
    count = np.convolve(good.astype(float), kernel, "same")
    return np.asarray(np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0))


def _label_steps(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")


@default_style()
def draw_learning_curves(logs: Sequence[TrainingLog]) -> Figure:
    """Draw the bound of each run over steps, nats per example: training thin, validation with standard error."""
    figure = new_figure(5.4, 3.4)
    axes = style_axes(figure.add_subplot(), "", "step", "nats per example")
    for log, colour in zip(logs, category_colours(len(logs)), strict=True):
        axes.plot(log.steps, _smooth(log.bound), color=colour, linewidth=1.0, alpha=0.45)
        label = log.name
        if len(log.validation):
            errors = np.nan_to_num(log.validation_stderr)
            axes.fill_between(
                log.validation_steps, log.validation - errors, log.validation + errors, color=colour, alpha=0.2, lw=0
            )
            marker = "o" if len(log.validation) < 40 else ""
            axes.plot(log.validation_steps, log.validation, color=colour, lw=1.8, marker=marker, ms=3, label=label)
        else:
            axes.plot([], [], color=colour, linewidth=1.0, alpha=0.45, label=f"{label} (training only)")
    limits = _settled_range([curve for log in logs for curve in (_smooth(log.bound), log.validation)])
    if limits:
        axes.set_ylim(*limits)
    _label_steps(axes)
    if logs:
        axes.legend(frameon=False, fontsize=SMALL, loc="lower right")
    axes.text(
        0, 1.02, "thick: validation with standard error · thin: training batches, smoothed",
        transform=axes.transAxes, fontsize=SMALL, color=MUTED,
    )  # fmt: skip
    return figure


@default_style()
def draw_term_curves(log: TrainingLog) -> Figure:
    """Draw each term of the bound, gradient norm, learning rate and speed of a run in a small panel."""
    panels = [(name, values, "nats") for name, values in log.terms.items() if np.isfinite(values).any()]
    panels += [
        (name, values, "")
        for name, values in (
            ("gradient norm", log.gradient_norm),
            ("learning rate", log.learning_rate),
            ("examples per second", log.rate),
        )
        if np.isfinite(values).any()
    ]
    columns = min(4, max(1, len(panels)))
    rows = max(1, math.ceil(len(panels) / columns))
    figure = new_figure(2.75 * columns, 1.9 * rows)
    for position, (name, values, unit) in enumerate(panels):
        axes = style_axes(figure.add_subplot(rows, columns, position + 1), "", "", unit)
        axes.set_title(name.replace("_", " "), loc="left", fontsize=SMALL)
        axes.plot(log.steps, values, color=category_colours(1)[0], linewidth=0.5, alpha=0.35)
        axes.plot(log.steps, _smooth(values), color=category_colours(1)[0], linewidth=1.3)
        limits = _settled_range([values])
        if limits and name != "learning rate":
            axes.set_ylim(*limits)
        _label_steps(axes)
    return figure
