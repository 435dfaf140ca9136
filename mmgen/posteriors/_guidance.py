"""Settings of guidance: the power of p(y|z), the number of candidates, and balance."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any

from pydantic import SkipValidation

from mmgen.core.errors import UsageError
from mmgen.results.naming import format_weight
from mmgen.settings.arguments import format_value

__all__ = ["MOST", "NO_GUIDANCE", "AnyGuidance", "Guidance", "parse_guidance"]

MOST = 1e6
"""Largest weight, with which only the likeliest candidate is drawn."""
EFFECTIVE, CANDIDATES = 10.0, 4096
"""Default effective sample size of candidates to reach, and default largest number of candidates."""
_MOST_CANDIDATES = 2**20
_BALANCED = "balanced"


@dataclass(frozen=True)
class Guidance:
    """Settings of guidance; False as a truth value if the weight is 0.

    Attributes:
        weight: w of p(y|z)^w; 0 for no guidance.
        balanced: Whether unspecified attributes keep their shares (:mod:`mmgen.posteriors._balance`).
        effective: Effective sample size of candidates to reach, on average over draws.
        candidates: Largest number of candidates of each draw; smallest number of shared draws.

    Example:
        >>> Guidance.of("3:balanced"), str(Guidance.of("3:balanced")), bool(Guidance.of(0)), str(Guidance.of(0.5))
        (Guidance(weight=3.0, balanced=True, effective=10.0, candidates=4096), '3:balanced', False, '0.5')
        >>> str(Guidance.of("10:balanced:effective=100:candidates=65536"))
        '10:balanced:effective=100:candidates=65536'
    """

    weight: float = 0.0
    balanced: bool = False
    effective: float = EFFECTIVE
    candidates: int = CANDIDATES

    def __bool__(self) -> bool:
        return self.weight > 0

    def __str__(self) -> str:
        short = format_weight(self.weight)
        parts = [short if float(short) == self.weight else repr(self.weight)]
        parts += [_BALANCED] if self.balanced else []
        parts += [f"effective={self.effective:g}"] if self.effective != EFFECTIVE else []
        parts += [f"candidates={self.candidates}"] if self.candidates != CANDIDATES else []
        return ":".join(parts)

    @classmethod
    def of(cls, value: "AnyGuidance") -> "Guidance":
        """Parse guidance: a weight with options, "3:balanced" or "3:effective=100:candidates=65536".

        Raises:
            UsageError: The weight is not from 0 to 1,000,000, or an option is unknown.
        """
        if isinstance(value, Guidance):
            return value
        text, *options = value.split(":") if isinstance(value, str) else (value,)
        is_valid_type = isinstance(value, str | Real) and not isinstance(value, bool)
        try:
            weight = float(text) if is_valid_type else -1.0
        except (ValueError, OverflowError):
            weight = -1.0
        settings = _parse_options(options) if 0 <= weight <= MOST else None
        if settings is None:
            got = ("nothing" if value == "" else value) if is_valid_type else format_value(value)
            raise UsageError(
                f"guidance got {got}, expected a number from 0 to {MOST:,.0f}, such as 3, or 3:{_BALANCED}, or with an "
                f"effective sample size from 1 and candidates from 1 to {_MOST_CANDIDATES:,}, such as "
                "3:effective=100:candidates=65536"
            )
        if options and not weight:
            raise UsageError(f"guidance got {value}, expected a weight above 0, such as 3:{_BALANCED}")
        return cls(weight, **settings)


def _parse_options(parts: Sequence[str]) -> dict[str, Any] | None:
    """Parse the options after a weight; None if one is unknown or repeated."""
    options: dict[str, Any] = {}
    for part in parts:
        name, _, text = part.partition("=")
        try:
            value = part == _BALANCED or {"effective": float, "candidates": int}[name](text)
        except (KeyError, ValueError):
            return None
        if name in options or not 1 <= value <= _MOST_CANDIDATES:
            return None
        options[name] = value
    return options


NO_GUIDANCE = Guidance()

AnyGuidance = Annotated[Guidance | float | str, SkipValidation]
"""Guidance as users type it: 3, "3", "3:balanced" or "3:effective=100:candidates=65536"; see :meth:`Guidance.of`."""


def parse_guidance(values: AnyGuidance | Sequence[AnyGuidance]) -> list[Guidance]:
    """Parse one guidance or several into a list.

    Raises:
        UsageError: A value is no guidance.

    Example:
        >>> [str(guidance) for guidance in parse_guidance([0, 3.5])]
        ['0', '3.5']
    """
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [Guidance.of(value) for value in values]
    return [Guidance.of(values)]
