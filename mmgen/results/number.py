"""Numbers with errors, and the rule by which tables round both."""

import math
from dataclasses import dataclass

_USUAL = 2
"""Decimals of a number without an error."""
_MOST = 5
"""Decimals at most; a smaller error is written as a power of ten."""


def decimal_places(error: float | None) -> int:
    """Return the number of decimals with which to print a value that has this error.

    The rule of the Particle Data Group: an error is rounded to two significant digits where its first three digits lie
    between 100 and 354, to one where they lie between 355 and 949, and above that it is rounded up to 1000. The value
    is rounded to the same decimal. Whole units are never rounded away. Without an error, or with an error of 0, a
    number has two decimals. JSON and CSV keep full precision.

    References:
        Review of Particle Physics (Particle Data Group, 2022), section 5.3 "Rounding"

    Example:
        >>> [decimal_places(error) for error in (1.08, 0.38, 0.96, 12.3, 45.0, 0.0461, None)]
        [1, 1, 1, 0, 0, 2, 2]
    """
    if not error or not math.isfinite(error):
        return _USUAL
    if abs(error) < 10.0**-_MOST:
        return _MOST
    exponent = math.floor(math.log10(abs(error)))
    leading = round(abs(error) / 10.0**exponent, 2)
    if leading >= 9.5:
        exponent, leading = exponent + 1, 1.0
    digits = 2 if leading < 3.55 else 1
    return min(_MOST, max(0, digits - 1 - exponent))


@dataclass(frozen=True)
class Number:
    """Number in a cell of a table, with its error: printed as "85.9 ± 1.1".

    Attributes:
        value: The number, in ``unit`` or the unit of its column.
        error: Its standard error, or standard deviation over seeds; None without one.
        unit: Unit printed after it; "" if the heading of its column names the unit.
        whole: Whether it is a count, printed without decimals.
        places: Decimals of a published number in its paper; None to follow the error.
        signed: Whether a sign is always printed, as for a difference.
        interval: Ends of a confidence interval, printed instead of the error: "-2.0 [-4.5, +0.5]".
        best: Whether it is highlighted: "*" in text, bold elsewhere.
        note: Text printed at the end: ", n = 2".
        detail: Further facts, which a page shows under the pointer.

    Example:
        >>> str(Number(85.94, 1.08, "%")), str(Number(1234567, whole=True)), str(Number(float("nan")))
        ('85.9 ± 1.1 %', '1,234,567', 'not finite')
        >>> str(Number(-2.0, 0.58, signed=True, interval=(-4.48, 0.48)))
        '-2.0 [-4.5, +0.5]'
    """

    value: float
    error: float | None = None
    unit: str = ""
    whole: bool = False
    places: int | None = None
    signed: bool = False
    interval: tuple[float, float] | None = None
    best: bool = False
    note: str = ""
    detail: str = ""

    @property
    def value_text(self) -> str:
        """The value rounded for print, without its error."""
        return self._format_rounded(self.value)

    @property
    def error_text(self) -> str:
        """The error rounded for print; "" for a number without an error."""
        if self.error is None or self.whole or not math.isfinite(self.error) or not math.isfinite(self.value):
            return ""
        text = f"{self.error:,.{self._decimals}f}"
        return f"{self.error:.1g}" if self.error and not float(text.replace(",", "")) else text

    @property
    def _decimals(self) -> int:
        if self.places is not None or self.whole:
            return self.places or 0
        if not self.error and 0 < abs(self.value) < 0.1:  # two digits of a small one
            return min(_MOST, 1 - math.floor(math.log10(abs(self.value))))
        return decimal_places(self.error)

    def _format_rounded(self, value: float) -> str:
        if not math.isfinite(value):
            return "not finite"
        return f"{value:{'+' if self.signed else ''},.{self._decimals}f}"

    def text_with_marks(self, before: str = "", after: str = "") -> str:
        """Format value and error, with the marks ``before`` and ``after`` around the value, such as for bold type."""
        text = f"{before}{self.value_text}{after}"
        if self.interval is not None:
            text += f" [{', '.join(map(self._format_rounded, self.interval))}]"
        elif self.error_text:
            text += f" ± {self.error_text}"
        return text + (f" {self.unit}" if self.unit else "") + self.note

    def __str__(self) -> str:
        return self.text_with_marks()
