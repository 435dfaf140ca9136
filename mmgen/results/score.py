"""One measured value with its error, its conditions and its run; and a table of such."""

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
from mmgen.core.parsing import MalformedError, parse_json, read_lines
from mmgen.results.frame import table_of
from mmgen.results.naming import CONDITIONAL, LEARNED_PRIOR, PosteriorName
from mmgen.results.number import Number
from mmgen.results.table import Cell, Table

Better = Literal["higher", "lower", "neither"]
"""The better direction of a score; "neither" for a number that is only informative."""

_LARGEST = 1e60
"""Bound of numbers in files: far above anything in float32, and its squares have finite sums."""

_RUN = ("name", "settings", "seed")
_DIGITS = 4  # decimals of the values of points in a file

_OPTIONAL_FIELDS = (
    "guidance", "base", "run", "guidance_method", "family", "sharpened", "as_given", "conditions", "seed", "points",
    "by_attribute", "judge", "warnings", "details",
)  # fmt: skip
"""Fields that a JSON line leaves out if they are empty."""

_Finite = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
_AtLeast0 = Annotated[float, Field(ge=0)]


@dataclass(frozen=True)
class ExampleValues:
    """The values of the single examples whose mean is a score; two scores of the same examples are compared in pairs.

    Attributes:
        values: A value for each data point, picture or query, in the unit of the score [N].
        weights: Weights of the mean [N]; None for equal ones.
        clusters: Number of the picture or source behind each value [N]; None if all are independent.
        shared_stderr: Standard error of noise that all values share, in the unit of the score.
    """

    values: list[_Finite]
    weights: list[float] | None = None
    clusters: list[int] | None = None
    shared_stderr: float = 0.0

    @classmethod
    def from_values(
        cls, values: Iterable[float], weights: Iterable[float] | None = None, shared_stderr: float = 0.0
    ) -> "ExampleValues":
        """Make the values as files store them: rounded to four decimals, and without weights if all are equal."""
        heavy = [] if weights is None else [float(weight) for weight in weights]
        chosen = heavy if len({*heavy}) > 1 else None
        return cls([round(float(value), _DIGITS) for value in values], chosen, shared_stderr=shared_stderr)

    @property
    def mean(self) -> float:
        """The weighted mean of the values, which is the score up to the rounding of files."""
        weights = [1.0] * len(self.values) if self.weights is None else self.weights
        return math.fsum(w * value for w, value in zip(weights, self.values, strict=True)) / math.fsum(weights)

    def is_mean(self, value: float) -> bool:
        """Return whether a score is the mean of these values, up to the rounding of files; values may be missing."""
        try:
            return not math.isfinite(self.mean) or math.isclose(self.mean, value, rel_tol=1e-4, abs_tol=0.006)
        except (ValueError, ZeroDivisionError):  # other numbers of weights, or weights that add up to 0
            return False

    @property
    def units(self) -> int:
        """Number of independent units behind the values: of clusters, or of values if there are no clusters."""
        return len(self.values) if self.clusters is None else len({*self.clusters})


@dataclass(frozen=True)
class Score:
    """Result of a metric: a measured number with its error, unit, better direction, posterior, files and training run.

    Attributes:
        metric: Name of the metric ("log-likelihood").
        quantity: The measured quantity ("log p(x|y)").
        value: The number, in ``unit``.
        stderr: Standard error of ``value``, in ``unit``; None without one.
        unit: "%", "nats", "units", "ranks", "squared distance" or "parameters".
        better: The better direction.
        n: Number of samples behind the value: pictures or data points.
        posterior: Posterior that z was drawn from: prior, own, true, aggregate, image, guided.
        given: Number of attributes in a description; None if the metric uses no descriptions.
        protocol: Variant of the metric ("exact", "paper", "importance", "bound", ...).
        judge_accuracy: Held-out accuracy of the attribute classifier in percent, by attribute and "mean"; None
            without a classifier.
        text_weight: For posterior "true", the power of p(y|z) in its fit; None for others.
        guidance: For posterior "guided", the weight of guidance; None for others.
        ids: Content ids of the files behind the value, by role.
        base: For a guided posterior, the posterior before guidance: prior, own, true, aggregate, learned prior; also
            "learned prior" for a fitted posterior that is conditioned on nothing, and "plain conditional VAE" for the
            prior of a model whose decoder receives the words; else "".
        run: The training run: "name" of its file, "settings" as a digest without seeds, which is the same for runs that
            differ only in their seed, and "seed"; {} if unknown.
        guidance_method: Method of guidance of a guided posterior: "" for p(y|z)^w, "cfg" or "gradient"; see
            :class:`mmgen.results.naming.PosteriorName`.
        family: Family of the fitted density that was measured, such as "rectified-flow"; "" for others.
        sharpened: Whether a sharpener completed the measured pictures.
        as_given: Whether words that descriptions leave open stayed open, instead of being completed first.
        conditions: Conditions that scores must share to be compared, by name: "split", "part", "samples", and others
            of the metric; "content" if the data are not the published dataset.
        seed: Seed of the evaluation: of the choice of queries and points, and of draws.
        points: Values of single examples; None if the score is not their mean.
        by_attribute: The same measure for each attribute alone.
        judge: Network of the attribute classifier; "" without one.
        warnings: Sentences of caution about the score.
        details: Further numbers by the names that the metric's page lists. Tables and figures read "ceiling" (the same
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
    guidance_method: str = ""
    family: str = ""
    sharpened: bool = False
    as_given: bool = False
    conditions: dict[str, str] = field(default_factory=dict)
    seed: int | None = None
    points: ExampleValues | None = None
    by_attribute: dict[str, float] = field(default_factory=dict)
    judge: str = ""
    warnings: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def unclipped(self) -> float:
        """The mean of the points; a score that is clipped to its range, as coverage is, tells it in ``details``."""
        found = self.details.get("unclipped", self.value)
        return float(found) if isinstance(found, int | float) else self.value

    @property
    def named(self) -> PosteriorName:
        """What the posterior that was measured is called, with the weights of its fit and its guidance."""
        base = self.base if self.posterior == "guided" or self.base == CONDITIONAL else self.posterior
        if self.base == LEARNED_PRIOR:
            base = PosteriorName.of_fit(base, {}, is_conditional=False).base
        return PosteriorName(base, self.text_weight, self.guidance or 0.0, self.guidance_method)

    @property
    def source(self) -> str:
        """Name of the posterior that was measured, with the weights of its fit and its guidance."""
        return f"{self.named}{self.remark}"

    @property
    def title(self) -> str:
        """Name of the posterior that was measured, with an explanation for a heading."""
        return f"{self.named.title}{self.remark}"

    @property
    def plain_name(self) -> str:
        """Name of the posterior in plain words, without formulas: "where real pictures lie"."""
        return self.named.plain

    @property
    def remark(self) -> str:
        """What was done beside drawing, as names end with it: ", not completed", ", sharpened"; "" for nothing."""
        return (", not completed" if self.as_given else "") + (", sharpened" if self.sharpened else "")

    def __str__(self) -> str:
        return f"{self.quantity or self.metric}: {self.number_with_unit}"

    @property
    def number(self) -> Number:
        """The score's value with its error, for a cell of a table."""
        return Number(self.value, self.stderr, whole=self.unit == "parameters")

    @property
    def number_with_unit(self) -> Number:
        """The score's value with its error and unit, for a table of several units."""
        return Number(self.value, self.stderr, self.unit, whole=self.unit == "parameters")

    @property
    def real_accuracy(self) -> float | None:
        """Accuracy of the attribute classifier on real pictures, in percent, over attributes that the score counts."""
        accuracy = self.judge_accuracy or {}
        with_words = self.protocol in ("paper", "generated-text") and "words" in accuracy
        return accuracy.get("words" if with_words else "mean")

    def to_json(self) -> dict[str, Any]:
        """Convert the score to plain values for a JSON line; numbers that are not finite become None."""
        plain = _json_values(asdict(self))
        return {
            key: value
            for key, value in plain.items()
            if key not in _OPTIONAL_FIELDS or value not in (None, "", {}, [], False)
        }


def content_condition(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return {"content": ...} for the conditions of scores if their dataset is not the published one, else {}.

    Example:
        >>> content_condition({"content": "not MNIST as published"}), content_condition({"recipe": "mnist"})
        ({'content': 'not MNIST as published'}, {})
    """
    content = settings.get("content")
    return {"content": str(content)} if content else {}


def classifier_names(scores: Sequence[Score]) -> list[str]:
    """Return the name of the classifier behind each score: its network, and the start of its content id if needed.

    The name is "" for a score without a classifier.
    """
    judges = {str(score.ids.get("judge") or ""): score.judge or "judge" for score in scores}
    several = {name for name in judges.values() if list(judges.values()).count(name) > 1}
    called = {one: f"{name} {one[:6]}" if name in several else name for one, name in judges.items() if one}
    return [called.get(str(score.ids.get("judge") or ""), "") for score in scores]


def _json_values(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _json_values(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json_values(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_scores(path: Path) -> list[Score]:
    """Read the scores that ``mmgen eval`` wrote to a file of JSON lines.

    Raises:
        ArtifactError: The file cannot be read, or a line is no score.
    """
    try:
        with closing(read_lines(path)) as lines:
            scores = [_parse_score(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    except OSError as error:
        raise ArtifactError(f"cannot read the file of scores {path}: {reason_of(error)}; check the path") from None
    except MalformedError as error:
        raise ArtifactError(
            f"{path} holds no scores, expected JSON lines as mmgen eval writes them: {error}; check the path"
        ) from None
    if not scores:
        raise ArtifactError(f"{path} holds no scores, expected some as mmgen eval writes them; check the path")
    return scores


@cache
def _score_adapter() -> TypeAdapter[Score]:
    return TypeAdapter(Score)


_USUAL: dict[str, Any] = {"quantity": "", "stderr": None, "unit": "", "better": "higher", "n": 0, "posterior": ""}
"""Defaults of fields that a line may lack, besides those with defaults in :class:`Score`."""


def _parse_score(path: Path, number: int, line: str) -> Score:
    refusal = ArtifactError(
        f"{path}: line {number} is no score, expected one as mmgen eval --json prints it; measure again, or remove the "
        "line"
    )
    try:
        record = parse_json(line)
        if not isinstance(record, dict) or not {"metric", "value"} <= record.keys() or "extra" in record:
            raise refusal
        score = _score_adapter().validate_json(json.dumps({**_USUAL, **record}), strict=True)
    except (MalformedError, ValidationError):
        raise refusal from None
    if any(abs(value) > _LARGEST for value in _iterate_numbers(record)):
        raise refusal
    if score.judge_accuracy and "mean" not in score.judge_accuracy:
        raise refusal
    if score.points is not None and not score.points.is_mean(score.unclipped):
        raise refusal
    if score.run and not all(key in score.run for key in _RUN):
        raise refusal
    return score


def _iterate_numbers(value: Any) -> Iterator[float]:
    """Yield all numbers within a JSON value."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _iterate_numbers(part)


def tabulate_scores(scores: Sequence[Score], title: str = "", details: Mapping[str, str] | None = None) -> Table:
    """Make a table with a row for each score of one evaluation; columns that would be empty are left out.

    Args:
        scores: The scores.
        title: Title of the table.
        details: Further columns: heading, and name of a number in :attr:`mmgen.results.score.Score.details`, which may
            have an error under the same name with "_stderr", and a name that is printed after it with "_name".
    """
    one_unit = len({score.unit for score in scores}) == 1
    judges = classifier_names(scores)
    several = len({*judges} - {""}) > 1
    named = not title or {score.quantity for score in scores} != {title}
    value = f"{scores[0].unit if one_unit else 'value'} ± standard error"
    rows: list[dict[str, Cell]] = [
        {
            "measured": (score.quantity or score.metric) if named else "",
            "drawn from": score.source,
            "judge": judge if several else "",
            "given": "" if score.given is None else str(score.given),
            "protocol": score.protocol,
            value: score.number if one_unit else score.number_with_unit,
            "n": f"{score.n:,}",
            **{name: _detail_cell(score.details, key) for name, key in (details or {}).items()},
            "judge %": "" if score.real_accuracy is None else f"{score.real_accuracy:.1f}",
        }
        for score, judge in zip(scores, judges, strict=True)
    ]
    return table_of(title, rows)


def detail_number(details: Mapping[str, Any], key: str) -> Number | None:
    """Return the number of details under a key, with its error and what it is of; None if there is none."""
    value, error, name = (details.get(f"{key}{ending}") for ending in ("", "_stderr", "_name"))
    if not isinstance(value, float):
        return None
    return Number(value, error if isinstance(error, float) else None, note=f" {name}" if name else "")


def _detail_cell(details: Mapping[str, Any], key: str) -> Cell:
    if number := detail_number(details, key):
        return number
    value = details.get(key)
    return f"{value:,}" if type(value) is int else "" if value is None else str(value)


class Scores(list[Score]):
    """List of the scores of one evaluation, which a notebook or terminal prints as a table.

    Args:
        scores: The scores.
        path: The file of the scores; None if they were not written to a file.
    """

    def __init__(self, scores: Iterable[Score], path: Path | None = None) -> None:
        super().__init__(scores)
        self.path = path

    def __repr__(self) -> str:
        return tabulate_scores(self).text() if self else "no scores"

    def _repr_html_(self) -> str:
        return tabulate_scores(self).html() if self else "no scores"
