"""Settings of guidance: its weight and its method, by the model's own p(y|z) or by a flow itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any

from pydantic import SkipValidation

from mmgen.core.errors import UsageError
from mmgen.results.naming import format_weight
from mmgen.settings.arguments import format_value

MOST = 1e6
"""Largest weight, with which only the likeliest candidate is drawn."""
_MOST_CANDIDATES = 2**20
_CANDIDATES = ("effective", "candidates")
CFG, GRADIENT = "cfg", "gradient"
"""Methods of guidance beside the plain one."""
_STEERING = (CFG, GRADIENT)


@dataclass(frozen=True)
class Guidance:
    """Settings of guidance; an instance of weight 0 counts as False.

    Attributes:
        weight: w of p(y|z)^w, or s of classifier-free guidance; 0 for no guidance.
        method: "" for candidates weighted by p(y|z)^w; "cfg" for classifier-free guidance,
            "gradient" for that of w log p(y|z) on the path of a flow (:mod:`mmgen.posteriors._steered`).
        effective: Effective sample size of candidates to reach, on average over draws; None for the posterior's own.
        candidates: Largest number of candidates of each draw, smallest number of shared draws; None likewise.
        start, end: Part of the path of a flow, within 0 (noise) and 1, on which "cfg" and "gradient" act.

    Example:
        >>> Guidance.parse(3).method, bool(Guidance.parse(0)), str(Guidance.parse(0.5))
        ('', False, '0.5')
        >>> Guidance.parse("cfg:0.5").weight, str(Guidance.parse("cfg:1:start=0.2:end=0.8"))
        (0.5, 'cfg:1:start=0.2:end=0.8')
        >>> str(Guidance.parse("10:effective=100:candidates=65536"))
        '10:effective=100:candidates=65536'
    """

    weight: float = 0.0
    method: str = ""
    effective: float | None = None
    candidates: int | None = None
    start: float = 0.0
    end: float = 1.0

    def __bool__(self) -> bool:
        return self.weight > 0

    @property
    def steers(self) -> bool:
        """True if it steers the path of a fitted flow, False if it chooses among candidates."""
        return self.method in _STEERING

    def __str__(self) -> str:
        short = format_weight(self.weight)
        parts = [self.method] if self.steers else []
        parts += [short if float(short) == self.weight else repr(self.weight)]
        parts += [f"effective={self.effective:g}"] if self.effective is not None else []
        parts += [f"candidates={self.candidates}"] if self.candidates is not None else []
        parts += [f"start={self.start:g}"] if self.start else []
        parts += [f"end={self.end:g}"] if self.end != 1 else []
        return ":".join(parts)

    @classmethod
    def parse(cls, value: "AnyGuidance") -> "Guidance":
        """Parse guidance: a weight with options, such as "3", "3:effective=100:candidates=65536" or "cfg:0.5".

        Raises:
            UsageError: The weight is not from 0 to 1,000,000, or an option is unknown.
        """
        if isinstance(value, Guidance):
            return value
        text, *options = value.split(":") if isinstance(value, str) else (value,)
        steering = str(text) if options and text in _STEERING else ""
        if steering:
            text, *options = options
        is_valid_type = isinstance(value, str | Real) and not isinstance(value, bool)
        try:
            weight = float(text) if is_valid_type else -1.0
        except (ValueError, OverflowError):
            weight = -1.0
        settings = _parse_options(options, steering, value) if 0 <= weight <= MOST else None
        if settings is None:
            got = ("nothing" if value == "" else value) if is_valid_type else format_value(value)
            raise UsageError(
                f"guidance got {got}, expected a number from 0 to {MOST:,.0f}, such as 3, or with an "
                f"effective sample size from 1 and candidates from 1 to {_MOST_CANDIDATES:,}, such as "
                f"3:effective=100:candidates=65536; of a rectified flow {CFG}:0.5, {GRADIENT}:1, or "
                f"{CFG}:0.5:start=0.2:end=0.8"
            )
        if (options or steering) and not weight:
            example = f"{steering}:0.5" if steering else f"3:{':'.join(options)}"
            raise UsageError(f"guidance got {value}, expected a weight above 0, such as {example}")
        return cls(weight, **settings)


def _parse_options(options: Sequence[str], steering: str, value: object) -> dict[str, Any] | None:
    """Return settings from the options after a weight; None if one is unknown, repeated or out of range.

    Raises:
        UsageError: An option is one of another method, or the part of the path is none.
    """
    others = _CANDIDATES if steering else ("start", "end")
    if foreign := [name for name in (option.partition("=")[0] for option in options) if name in others]:
        method = "weights without a method, such as 3" if steering else f"{CFG} and {GRADIENT}"
        raise UsageError(f"guidance got {value}, but {foreign[0]} is an option of {method}; leave it out")
    settings: dict[str, Any] = {"method": steering} if steering else {}
    ranges = {"start": (0.0, 1.0), "end": (0.0, 1.0)} if steering else dict.fromkeys(_CANDIDATES, (1, _MOST_CANDIDATES))
    for option in options:
        name, _, text = option.partition("=")
        try:
            number = int(text) if name == "candidates" else float(text)
            low, high = ranges[name]
        except (KeyError, ValueError):
            return None
        if steering and not low <= number <= high:
            raise UsageError(f"guidance got {value}, expected 0 <= start < end <= 1, such as start=0.2:end=0.8")
        if name in settings or not low <= number <= high:
            return None
        settings[name] = number
    if settings.get("start", 0.0) >= settings.get("end", 1.0):
        raise UsageError(f"guidance got {value}, expected 0 <= start < end <= 1, such as start=0.2:end=0.8")
    return settings


NO_GUIDANCE = Guidance()

AnyGuidance = Annotated[Guidance | float | str, SkipValidation]
"""Guidance as users type it: 3, "3", "cfg:0.5" or "gradient:1"; see :meth:`Guidance.parse`."""


def parse_guidance(values: AnyGuidance | Sequence[AnyGuidance]) -> list[Guidance]:
    """Parse one value of guidance, or several, into a list.

    Raises:
        UsageError: A value is no guidance.

    Example:
        >>> [str(guidance) for guidance in parse_guidance([0, 3.5])]
        ['0', '3.5']
    """
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [Guidance.parse(value) for value in values]
    return [Guidance.parse(values)]
