"""How posteriors are guided: by which power of p(y|z), from how many candidates, and whether shares stay."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any

from pydantic import SkipValidation

from mmgen.core.errors import UsageError
from mmgen.results.naming import number_of
from mmgen.settings.arguments import told

__all__ = ["MOST", "NO_TILT", "AnyTilt", "Tilt", "tilts"]

MOST = 1e6
"""The largest weight: far beyond it only the likeliest candidate is left."""
EFFECTIVE, CANDIDATES = 10.0, 4096
"""The effective sample size of candidates that is worked for, and how many of them there are at most, by default."""
_MOST_CANDIDATES = 2**20
_BALANCED = "balanced"


@dataclass(frozen=True)
class Tilt:
    """By how much posteriors are guided, and how; false where they are not.

    Attributes:
        weight: w of p(y|z)^w; 0: not at all.
        balanced: Whether attributes that a description leaves out keep the shares that they had
            (:mod:`mmgen.posteriors._balance`).
        effective: Effective sample size of the candidates of a draw at which they are enough, on average over draws.
        candidates: How many there are at most, for each draw; at least so many in a pool.

    Example:
        >>> Tilt.of("3:balanced"), str(Tilt.of("3:balanced")), bool(Tilt.of(0)), str(Tilt.of(0.5))
        (Tilt(weight=3.0, balanced=True, effective=10.0, candidates=4096), '3:balanced', False, '0.5')
        >>> str(Tilt.of("10:balanced:effective=100:candidates=65536"))
        '10:balanced:effective=100:candidates=65536'
    """

    weight: float = 0.0
    balanced: bool = False
    effective: float = EFFECTIVE
    candidates: int = CANDIDATES

    def __bool__(self) -> bool:
        return self.weight > 0

    def __str__(self) -> str:
        short = number_of(self.weight)
        said = [short if float(short) == self.weight else repr(self.weight)]
        said += [_BALANCED] if self.balanced else []
        said += [f"effective={self.effective:g}"] if self.effective != EFFECTIVE else []
        said += [f"candidates={self.candidates}"] if self.candidates != CANDIDATES else []
        return ":".join(said)

    @classmethod
    def of(cls, value: "AnyTilt") -> "Tilt":
        """What a person says: a weight, and how, "3:balanced" or "3:effective=100:candidates=65536".

        Raises:
            UsageError: It is no finite weight of at least 0, or says something else behind it.
        """
        if isinstance(value, Tilt):
            return value
        text, *how = value.split(":") if isinstance(value, str) else (value,)
        known = isinstance(value, str | Real) and not isinstance(value, bool)
        try:
            weight = float(text) if known else -1.0
        except (ValueError, OverflowError):
            weight = -1.0
        settings = _settings(how) if 0 <= weight <= MOST else None
        if settings is None:
            got = ("nothing" if value == "" else value) if known else told(value)
            raise UsageError(
                f"guidance got {got}, expected a number from 0 to {MOST:,.0f}, such as 3, or 3:{_BALANCED}, or with an "
                f"effective sample size from 1 and candidates from 1 to {_MOST_CANDIDATES:,}, such as "
                "3:effective=100:candidates=65536"
            )
        if how and not weight:
            raise UsageError(f"guidance got {value}, expected a weight above 0, such as 3:{_BALANCED}")
        return cls(weight, **settings)


def _settings(how: Sequence[str]) -> dict[str, Any] | None:
    """What stands behind a weight; None where that is nothing known, or known twice."""
    found: dict[str, Any] = {}
    for part in how:
        name, _, text = part.partition("=")
        try:
            value = part == _BALANCED or {"effective": float, "candidates": int}[name](text)
        except (KeyError, ValueError):
            return None
        if name in found or not 1 <= value <= _MOST_CANDIDATES:
            return None
        found[name] = value
    return found


NO_TILT = Tilt()

AnyTilt = Annotated[Tilt | float | str, SkipValidation]
"""What a person may give for it: 3, "3", "3:balanced" or "3:effective=100:candidates=65536". :meth:`Tilt.of` checks
it."""


def tilts(given: AnyTilt | Sequence[AnyTilt]) -> list[Tilt]:
    """One tilt or several, in a list.

    Raises:
        UsageError: One of them is none.

    Example:
        >>> [str(tilt) for tilt in tilts("3:balanced")], [str(tilt) for tilt in tilts([0, 3.5])]
        (['3:balanced'], ['0', '3.5'])
    """
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [Tilt.of(one) for one in given]
    return [Tilt.of(given)]
