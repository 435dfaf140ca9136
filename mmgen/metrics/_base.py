"""What every metric is: a score with its error, its unit and which way is better, and how to compute it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from mmgen.aggregates._naming import posterior_name, posterior_title
from mmgen.generation.naming import guided_name, guided_title

if TYPE_CHECKING:
    from mmgen.metrics._evaluation import Evaluation

__all__ = ["Better", "Metric", "Score", "relay"]

T = TypeVar("T")
Better = Literal["higher", "lower"]


_WHERE_KNOWN = ("guidance", "base")
"""Fields that a JSON line leaves out where they say nothing."""


@dataclass(frozen=True)
class Score:
    """One number, and what is needed to read it.

    Attributes:
        metric: Name of the metric ("log-likelihood").
        quantity: What exactly was measured ("log p(x|y)").
        value: In ``unit``.
        stderr: Standard error of ``value``, in ``unit``; None where there is none.
        unit: "%", "nats", "units", "squared distance" or "parameters".
        better: Which way is better.
        n: Samples behind the value: images judged, or data points.
        posterior: Where z came from: prior, text, true, aggregate, image, guided.
        given: Number of attributes that were given; None where the question makes no sense.
        protocol: How it was measured ("exact", "paper", "importance", "bound", ...).
        judge_accuracy: The judge's own held-out accuracy in percent by attribute and "mean"; None without a judge.
        text_weight: Of posterior "true", the power of p(y|z) that it was fitted with; None for every other.
        guidance: Of posterior "guided", the power w of p(y|z) that tilts it; None for every other.
        ids: Content ids of the files behind the value, by role.
        extra: Further numbers: counts, biases, effective sample sizes, "splits_sd" over 5 splits of queries; and, of
            scores that depend on them, "split", "part" and "seed". "warnings" are sentences for whoever reads it.
        base: Of a guided posterior, what is guided: prior, text, true, aggregate, learned prior; else "".
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

    @property
    def source(self) -> str:
        """What people call the posterior, with the weights that it was fitted with."""
        if self.posterior == "guided":
            return guided_name(self.base, self.guidance or 0.0, self.text_weight)
        return posterior_name(self.posterior, self.text_weight, given=self.fitted_given)

    @property
    def title(self) -> str:
        """Its name and what it is."""
        if self.posterior == "guided":
            return guided_title(self.base, self.guidance or 0.0, self.text_weight)
        return posterior_title(self.posterior, self.text_weight, given=self.fitted_given)

    @property
    def fitted_given(self) -> str | None:
        """What a fitted posterior is conditioned on, where that changes its name: "nothing" for q(z)."""
        return "nothing" if self.extra.get("learned_prior") else None

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON line; what is not finite becomes None, which JSON can say."""
        return {key: _plain(value) for key, value in asdict(self).items() if value or key not in _WHERE_KNOWN}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Metric(ABC):
    """Base of all metrics. Members have no state; what they measure comes in an :class:`Evaluation`."""

    unit: ClassVar[str]
    better: ClassVar[Better]
    judged: ClassVar[bool] = False
    """Whether it needs a judge."""
    of_points: ClassVar[bool] = False
    """Whether it looks at data points themselves, which the model had better not be trained on."""
    heeds_guidance: ClassVar[bool] = True
    """Whether it asks posteriors of descriptions, which can be guided."""
    per_posterior: ClassVar[bool] = True
    """Whether it is asked once per posterior, or once per model."""
    rank: ClassVar[int] = 1
    """Order of evaluation: what asks for more samples comes first, so that the others share all of them."""
    columns: ClassVar[Mapping[str, str]] = {}
    """Further columns of its table, heading: name of the number in :attr:`Score.extra`. Quantity, posterior, value with
    its error, number of samples and the judge's accuracy are there anyway; scores without a number leave its place
    empty."""

    def check(self, evaluation: "Evaluation") -> None:  # noqa: B027  # most metrics accept every model
        """Raise a UsageError where the metric cannot be asked of this model; called before any work."""

    @abstractmethod
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        """Measure: yields the fraction done, from 0 to 1, and returns the scores."""


def relay(work: Generator[float, None, T], start: float, share: float) -> Generator[float, None, T]:
    """``work`` with its fractions mapped from [0, 1] to [start, start + share]; returns what it returns."""
    while True:
        try:
            yield start + share * next(work)
        except StopIteration as stop:
            value: T = stop.value
            return value
