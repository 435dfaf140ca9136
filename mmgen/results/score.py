"""A number with its error, its unit and which way is better, and everything that is needed to read it."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from mmgen.core.errors import ArtifactError, reason_of
from mmgen.core.parsing import Malformed, lines_bounded, parse_json
from mmgen.results.naming import LEARNED_PRIOR, posterior_name, posterior_title
from mmgen.results.number import Number

__all__ = ["Better", "Points", "Score", "judge_names", "other_data", "read_scores"]

Better = Literal["higher", "lower", "neither"]
"""Which way is better; "neither" for a number that has no good side."""

_LARGEST = 1e60
"""Nothing computed in float32 comes near this, and sums of its squares are finite."""

_RUN = ("name", "settings", "seed")
_DIGITS = 4  # decimals of the values of points in a file

_WHERE_KNOWN = (
    "guidance", "base", "run", "balanced", "conditions", "seed", "points", "by_attribute", "judge", "warnings",
    "details",
)  # fmt: skip
"""Fields that a JSON line leaves out where they are empty."""

_Finite = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
_AtLeast0 = Annotated[float, Field(ge=0)]


@dataclass(frozen=True)
class Points:
    """Values of single examples behind a score that is their mean, for paired differences of two scores.

    Attributes:
        values: One for each data point, picture or query, in the unit of the score [N].
        weights: Weights of the mean [N]; None for equal ones.
        clusters: Number of the picture or source that each is of [N]; None where each is its own.
        shared_stderr: Standard error of noise that all of them share, in the unit of the score.
    """

    values: list[_Finite]
    weights: list[float] | None = None
    clusters: list[int] | None = None
    shared_stderr: float = 0.0

    @classmethod
    def of(
        cls, values: Iterable[float], weights: Iterable[float] | None = None, shared_stderr: float = 0.0
    ) -> "Points":
        """Return points as files hold them: values with four decimals, no weights where all are equal."""
        heavy = [] if weights is None else [float(weight) for weight in weights]
        chosen = heavy if len({*heavy}) > 1 else None
        return cls([round(float(value), _DIGITS) for value in values], chosen, shared_stderr=shared_stderr)

    @property
    def units(self) -> int:
        """Return the number of independent units: clusters, or points without clusters."""
        return len(self.values) if self.clusters is None else len({*self.clusters})


@dataclass(frozen=True)
class Score:
    """One measured number with its error, unit, direction, posterior, files and run.

    Attributes:
        metric: Name of the metric ("log-likelihood").
        quantity: What exactly was measured ("log p(x|y)").
        value: In ``unit``.
        stderr: Standard error of ``value``, in ``unit``; None where there is none.
        unit: "%", "nats", "units", "ranks", "squared distance" or "parameters".
        better: Which way is better.
        n: Number of samples behind the value: pictures, or data points.
        posterior: Where z came from: prior, own, true, aggregate, image, guided.
        given: Number of attributes that were given; None where the question makes no sense.
        protocol: How it was measured ("exact", "paper", "importance", "bound", ...).
        judge_accuracy: Held-out accuracy of the attribute classifier in percent, by attribute and "mean"; None
            without a classifier.
        text_weight: For posterior "true", the power of p(y|z) that it was fitted with; None for every other.
        guidance: For posterior "guided", the power w of p(y|z) that tilts it; None for every other.
        ids: Content ids of the files behind the value, by role.
        base: For a guided posterior, what is guided: prior, own, true, aggregate, learned prior; also "learned prior"
            for a fitted posterior that is conditioned on nothing; else "".
        run: Run that was trained: "name" of its file, "settings" as a digest without seeds, so that runs which differ
            in their seed alone have the same, and "seed"; {} where no run is known.
        balanced: For a guided posterior, whether attributes that are left out keep their shares.
        conditions: What scores must share to be compared, by name: "split", "part", "samples", and whatever else
            changes the question of its metric; "content" where the data are not the published set.
        seed: Seed of the evaluation: of its choice of queries and points, and of its draws.
        points: Values of single examples; None where the score is no mean of such.
        by_attribute: The same measure for each attribute alone.
        judge: Network of the attribute classifier; "" without one.
        warnings: Sentences for whoever reads the score.
        details: Further numbers by the names that the metric's page lists. Read by others: "ceiling" (the same
            measure of real pictures) with "ceiling_stderr", "chance" with "pool", "splits_sd", and for label
            accuracies "method", "share" and "paired".
    """

    metric: str
    quantity: str
    value: _Finite
    stderr: _AtLeast0 | None
    unit: str
    better: Better
    n: Annotated[int, Field(ge=0)]
    posterior: str
    given: Annotated[int, Field(ge=0)] | None = None
    protocol: str = ""
    judge_accuracy: dict[str, float] | None = None
    text_weight: _AtLeast0 | None = None
    guidance: _AtLeast0 | None = None
    ids: dict[str, str] = field(default_factory=dict)
    base: str = ""
    run: dict[str, str] = field(default_factory=dict)
    balanced: bool = False
    conditions: dict[str, str] = field(default_factory=dict)
    seed: int | None = None
    points: Points | None = None
    by_attribute: dict[str, float] = field(default_factory=dict)
    judge: str = ""
    warnings: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Return the name of the posterior, with the weights of its fit."""
        return posterior_name(
            self._drawn_from, self.text_weight, self.guidance or 0.0, self.balanced, given=self._given
        )

    @property
    def title(self) -> str:
        """Return the name of the posterior and what it is."""
        return posterior_title(
            self._drawn_from, self.text_weight, self.guidance or 0.0, self.balanced, given=self._given
        )

    @property
    def _drawn_from(self) -> str:
        return self.base if self.posterior == "guided" else self.posterior

    @property
    def _given(self) -> str | None:
        return "nothing" if self.base == LEARNED_PRIOR else None

    def __str__(self) -> str:
        return f"{self.quantity or self.metric}: {self.number_with_unit}"

    @property
    def number(self) -> Number:
        """Return the value with its error for tables."""
        return Number(self.value, self.stderr, whole=self.unit == "parameters")

    @property
    def number_with_unit(self) -> Number:
        """Return the value with error and unit, for tables of several units."""
        return Number(self.value, self.stderr, self.unit, whole=self.unit == "parameters")

    @property
    def real_accuracy(self) -> float | None:
        """Return the classifier's accuracy on real pictures, in percent, over the attributes of the protocol."""
        accuracy = self.judge_accuracy or {}
        with_words = self.protocol in ("paper", "generated-text") and "words" in accuracy
        return accuracy.get("words" if with_words else "mean")

    def to_json(self) -> dict[str, Any]:
        """Return plain values for a JSON line; what is not finite becomes None."""
        plain = _plain(asdict(self))
        return {
            key: value
            for key, value in plain.items()
            if key not in _WHERE_KNOWN or value not in (None, "", {}, [], False)
        }


def other_data(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the condition of scores whose dataset is not the published one that its recipe is named after.

    Example:
        >>> other_data({"recipe": "mnist", "content": "not MNIST as published"}), other_data({"recipe": "mnist"})
        ({'content': 'not MNIST as published'}, {})
    """
    content = settings.get("content")
    return {"content": str(content)} if content else {}


def judge_names(scores: Sequence[Score]) -> list[str]:
    """Return the name of the classifier of each score: its network, with the start of its content id where ambiguous.

    "" for a score without one.
    """
    judges = {str(score.ids.get("judge") or ""): score.judge or "judge" for score in scores}
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
    """Read the scores that ``mmgen eval`` wrote: one JSON object a line.

    Raises:
        ArtifactError: It cannot be read, or a line is no score.
    """
    try:
        with closing(lines_bounded(path)) as lines:
            scores = [_score(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    except OSError as error:
        raise ArtifactError(f"cannot read the scores {path}: {reason_of(error)}; check the path") from None
    except Malformed as error:
        raise ArtifactError(f"{path} holds no scores (JSON lines): {error}; check the path") from None
    if not scores:
        raise ArtifactError(f"{path} holds no scores, expected some as mmgen eval writes them; check the path")
    return scores


@cache
def _reader() -> TypeAdapter[Score]:
    return TypeAdapter(Score)


_USUAL: dict[str, Any] = {"quantity": "", "stderr": None, "unit": "", "better": "higher", "n": 0, "posterior": ""}
"""Fields that a line may lack besides those that a score may lack."""


def _score(path: Path, number: int, line: str) -> Score:
    expected = "expected scores as mmgen eval --json prints them"
    try:
        record = parse_json(line)
    except Malformed as error:
        raise ArtifactError(f"{path}: line {number} is no JSON ({error}), {expected}") from None
    if not isinstance(record, dict) or not {"metric", "value"} <= record.keys():
        raise ArtifactError(f"{path}: line {number} has no metric and value, {expected}")
    if beyond := next((value for value in _numbers(record) if abs(value) > _LARGEST), None):
        raise ArtifactError(f"{path}: line {number} says {beyond:g}, expected numbers of at most {_LARGEST:g}; fix it")
    if "extra" in record:
        raise ArtifactError(f"{path}: line {number} has an older format, {expected}; measure again with mmgen eval")
    try:
        score = _reader().validate_json(json.dumps({**_USUAL, **record}), strict=True)
    except ValidationError as error:
        name, kind = error.errors()[0]["loc"][0], error.errors()[0]["type"]
        wrong = {"greater_than_equal": "below 0", "literal_error": "beside higher, lower, neither"}
        raise ArtifactError(
            f"{path}: line {number} has a {name} {wrong.get(kind, 'of the wrong kind')}, {expected}"
        ) from None
    if score.judge_accuracy and "mean" not in score.judge_accuracy:
        raise ArtifactError(f"{path}: line {number} has a judge_accuracy without mean, {expected}")
    if score.run and not all(key in score.run for key in _RUN):
        raise ArtifactError(f"{path}: line {number} has a run without {', '.join(_RUN)}, {expected}")
    return score


def _numbers(value: Any) -> Iterator[float]:
    """Yield every number of a JSON value."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
