"""How posteriors are guided: by which power of p(y|z), and whether what is not given keeps its shares."""

from collections.abc import Sequence
from dataclasses import dataclass

from mmgen.errors import UsageError
from mmgen.naming import number_of

__all__ = ["MOST", "NO_TILT", "AnyTilt", "Tilt", "tilts"]

MOST = 1e6
"""The largest weight: far beyond it only the likeliest candidate is left."""
_BALANCED = "balanced"


@dataclass(frozen=True)
class Tilt:
    """By how much posteriors are guided, and how; false where they are not.

    Attributes:
        weight: w of p(y|z)^w; 0: not at all.
        balanced: Whether attributes that a description leaves out keep the shares that they had
            (:mod:`mmgen.generation.balance`).

    Example:
        >>> Tilt.of("3:balanced"), str(Tilt.of("3:balanced")), bool(Tilt.of(0)), str(Tilt.of(0.5))
        (Tilt(weight=3.0, balanced=True), '3:balanced', False, '0.5')
    """

    weight: float = 0.0
    balanced: bool = False

    def __bool__(self) -> bool:
        return self.weight > 0

    def __str__(self) -> str:
        short = number_of(self.weight)
        return (short if float(short) == self.weight else repr(self.weight)) + (
            f":{_BALANCED}" if self.balanced else ""
        )

    @classmethod
    def of(cls, value: "AnyTilt") -> "Tilt":
        """What a person says: a weight, or a weight and how, "3:balanced".

        Raises:
            UsageError: It is no finite weight of at least 0, or says something else behind it.
        """
        if isinstance(value, Tilt):
            return value
        text, colon, how = value.partition(":") if isinstance(value, str) else (value, "", "")
        try:
            weight = float(text)
        except (TypeError, ValueError):
            weight = -1.0
        if not 0 <= weight <= MOST or isinstance(value, bool) or how != (_BALANCED if colon else ""):
            got = "nothing" if value == "" else value
            raise UsageError(
                f"guidance got {got}, expected a number from 0 to {MOST:,.0f}, such as 3, or 3:{_BALANCED}"
            )
        if how and not weight:
            raise UsageError(f"guidance got {value}, expected a weight above 0, such as 3:{_BALANCED}")
        return cls(weight, bool(how))


NO_TILT = Tilt()

AnyTilt = Tilt | float | str
"""What a person may give for it: 3, "3" or "3:balanced"."""


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
