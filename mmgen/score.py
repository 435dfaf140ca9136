"""A number with its error, its unit and which way is better, and what is needed to read it."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from mmgen.naming import guided_name, guided_title, posterior_name, posterior_title

__all__ = ["Better", "Score"]

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
