"""A number with its error, its unit and which way is better, and what is needed to read it."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from mmgen.core.errors import ArtifactError
from mmgen.core.markup import grid_table
from mmgen.core.parsing import Malformed, lines_bounded, parse_json
from mmgen.results.naming import guided_name, guided_title, posterior_called, posterior_name, posterior_title

__all__ = ["Better", "Score", "Scores", "judge_names", "other_data", "read_scores"]

_REQUIRED = ("metric", "value")
_DEFAULTS: dict[str, Any] = {
    "quantity": "", "stderr": None, "unit": "", "better": "higher", "n": 0, "posterior": "", "given": None,
    "protocol": "", "judge_accuracy": None, "text_weight": None, "guidance": None, "base": "", "ids": {}, "extra": {},
    "run": {}, "balanced": False,
}  # fmt: skip
_KINDS: dict[str, Any] = {
    "metric": str, "value": int | float | None, "quantity": str, "stderr": int | float | None, "unit": str,
    "better": str, "n": int, "posterior": str, "given": int | None, "protocol": str,
    "text_weight": int | float | None, "guidance": int | float | None, "ids": dict, "extra": dict,
    "judge_accuracy": dict | None, "base": str, "run": dict, "balanced": bool,
}  # fmt: skip
_AT_LEAST_0 = ("stderr", "n", "given", "text_weight", "guidance")

Better = Literal["higher", "lower", "neither"]
"""Which way is better; "neither" where a number is to be read and not to be won."""

_LARGEST = 1e60
"""Nothing computed in float32 comes near this, and sums of its squares are finite."""

_RUN = ("name", "settings", "seed")

_WHERE_KNOWN = ("guidance", "base", "run", "balanced")
"""Fields that a JSON line leaves out where they say nothing."""


@dataclass(frozen=True)
class Score:
    """One number, and what is needed to read it.

    Attributes:
        metric: Name of the metric ("log-likelihood").
        quantity: What exactly was measured ("log p(x|y)").
        value: In ``unit``.
        stderr: Standard error of ``value``, in ``unit``; None where there is none.
        unit: "%", "nats", "units", "ranks", "squared distance" or "parameters".
        better: Which way is better.
        n: Samples behind the value: images judged, or data points.
        posterior: Where z came from: prior, own, true, aggregate, image, guided.
        given: Number of attributes that were given; None where the question makes no sense.
        protocol: How it was measured ("exact", "paper", "importance", "bound", ...).
        judge_accuracy: The judge's own held-out accuracy in percent by attribute and "mean"; None without a judge.
        text_weight: For posterior "true", the power of p(y|z) that it was fitted with; None for every other.
        guidance: For posterior "guided", the power w of p(y|z) that tilts it; None for every other.
        ids: Content ids of the files behind the value, by role.
        extra: Further numbers: counts, biases, effective sample sizes, "splits_sd" over 5 splits of queries; and, of
            scores that depend on them, "split", "part" and "seed". "content" says that the data are not the published
            set that they are made like. "warnings" are sentences for whoever reads it.
        base: For a guided posterior, what is guided: prior, own, true, aggregate, learned prior; else "".
        run: What was trained: "name" of its file, "settings" as a digest without seeds, so that runs which differ in
            their seed alone have the same, and "seed"; {} in scores from before it was told.
        balanced: For a guided posterior, whether attributes that are left out keep their shares.
    """

    metric: str
    quantity: str
    value: float
    stderr: float | None
    unit: str
    better: Better
    n: int
    posterior: str
    given: int | None = None
    protocol: str = ""
    judge_accuracy: dict[str, float] | None = None
    text_weight: float | None = None
    guidance: float | None = None
    ids: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    base: str = ""
    run: dict[str, str] = field(default_factory=dict)
    balanced: bool = False

    @property
    def source(self) -> str:
        """What people call the posterior, with the weights that it was fitted with."""
        if self.posterior == "guided":
            return guided_name(self.base, self.guidance or 0.0, self.text_weight, self.balanced)
        return posterior_name(self.posterior, self.text_weight, given=self.fitted_given)

    @property
    def title(self) -> str:
        """Its name and what it is."""
        if self.posterior == "guided":
            return guided_title(self.base, self.guidance or 0.0, self.text_weight, self.balanced)
        return posterior_title(self.posterior, self.text_weight, given=self.fitted_given)

    @property
    def fitted_given(self) -> str | None:
        """What a fitted posterior is conditioned on, where that changes its name: "nothing" for q(z)."""
        return "nothing" if self.extra.get("learned_prior") else None

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON line; what is not finite becomes None, which JSON can say."""
        return {key: _plain(value) for key, value in asdict(self).items() if value or key not in _WHERE_KNOWN}


def other_data(settings: Mapping[str, Any]) -> dict[str, str]:
    """What the scores of a dataset say in ``extra`` where it is not the published one whose recipe made it.

    Example:
        >>> other_data({"recipe": "mnist", "content": "not MNIST as published"}), other_data({"recipe": "mnist"})
        ({'content': 'not MNIST as published'}, {})
    """
    content = settings.get("content")
    return {"content": str(content)} if content else {}


def judge_names(scores: Sequence[Score]) -> list[str]:
    """What the judge of each score is called: its network, with the start of its content id where two have the same.

    "" for a score without one.
    """
    judges = {str(score.ids.get("judge") or ""): str(score.extra.get("judge") or "judge") for score in scores}
    several = {name for name in judges.values() if list(judges.values()).count(name) > 1}
    called = {one: f"{name} {one[:6]}" if name in several else name for one, name in judges.items() if one}
    return [called.get(str(score.ids.get("judge") or ""), "") for score in scores]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_scores(path: Path) -> list[Score]:
    """The scores that ``mmgen eval`` wrote: one JSON object a line.

    Raises:
        ArtifactError: It cannot be read, or a line is no score.
    """
    try:
        with closing(lines_bounded(path)) as lines:
            found = [_score(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    except OSError as error:
        raise ArtifactError(f"cannot read the scores {path}: {error.strerror}; check the path") from None
    except Malformed as error:
        raise ArtifactError(f"{path} holds no scores (JSON lines): {error}; check the path") from None
    if not found:
        raise ArtifactError(f"{path} holds no scores, expected some as mmgen eval writes them; check the path")
    return found


def _score(path: Path, number: int, line: str) -> Score:
    expected = "expected scores as mmgen eval --json prints them"
    try:
        record = parse_json(line)
    except Malformed as error:
        raise ArtifactError(f"{path}: line {number} is no JSON ({error}), {expected}") from None
    if not isinstance(record, dict) or any(key not in record for key in _REQUIRED):
        raise ArtifactError(f"{path}: line {number} has no metric and value, {expected}")
    if beyond := next((value for value in _numbers(record) if abs(value) > _LARGEST), None):
        raise ArtifactError(f"{path}: line {number} says {beyond:g}, expected numbers of at most {_LARGEST:g}; mend it")
    known = {field.name for field in fields(Score)}
    values = {**_DEFAULTS, **{key: value for key, value in record.items() if key in known}}
    for key, kind in _KINDS.items():
        if not isinstance(values[key], kind) or (isinstance(values[key], bool) and kind is not bool):
            raise ArtifactError(f"{path}: line {number} has a {key} of the wrong kind, {expected}")
    if below := next((key for key in _AT_LEAST_0 if values[key] is not None and values[key] < 0), None):
        raise ArtifactError(f"{path}: line {number} has a {below} below 0, {expected}")
    if values["better"] not in get_args(Better):
        raise ArtifactError(f"{path}: line {number} has a better beside {', '.join(get_args(Better))}, {expected}")
    values |= {key: posterior_called(values[key]) for key in ("posterior", "base")}
    if values["posterior"] == "true" and values["text_weight"] is None:
        values["text_weight"] = 1.0  # scores from before there was a choice
    accuracies = values["judge_accuracy"] or {}
    if accuracies and "mean" not in accuracies:
        raise ArtifactError(f"{path}: line {number} has a judge_accuracy without mean, {expected}")
    if not all(type(accuracy) in (int, float) for accuracy in accuracies.values()):
        raise ArtifactError(f"{path}: line {number} has a judge_accuracy that is no number, {expected}")
    run = values["run"]
    if run and not all(isinstance(run.get(key), str) for key in _RUN):
        raise ArtifactError(f"{path}: line {number} has a run without {', '.join(_RUN)}, {expected}")
    return Score(**{**values, "value": float("nan") if values["value"] is None else float(values["value"])})


def _numbers(value: Any) -> Iterator[float]:
    """Every number of a JSON value."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)


class Scores(list[Score]):
    """Scores of one evaluation, and the file that keeps them.

    Args:
        scores: The scores.
        path: Their JSON lines; None where they were not kept.
    """

    def __init__(self, scores: Iterable[Score], path: Path | None = None) -> None:
        super().__init__(scores)
        self.path = path

    def _cells(self) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        judges = judge_names(self)
        several = len({*judges} - {""}) > 1
        for score, judge in zip(self, judges, strict=True):
            error = "" if score.stderr is None else f" ± {score.stderr:.2g}"
            given = "" if score.given is None else str(score.given)
            value = f"{score.value:.2f}{error} {score.unit}"
            judged = f" (judge {judge})" if several and judge else ""
            found.append(((score.quantity or score.metric) + judged, score.source, given, value))
        return found

    def __repr__(self) -> str:
        rows = [_HEADINGS, *self._cells()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADINGS))]
        return "\n".join("  ".join(f"{cell:<{size}}" for cell, size in zip(row, widths, strict=True)) for row in rows)

    def _repr_html_(self) -> str:
        return grid_table(_HEADINGS, self._cells())


_HEADINGS = ("measured", "drawn from", "words given", "value")
