"""What guided posteriors are called."""

from dataclasses import dataclass

__all__ = ["LEARNED_PRIOR", "Guidance"]

LEARNED_PRIOR = "learned prior"
"""The base of a posterior guided from an aggregate that is given nothing, q(z)."""

_SHORT = {"prior": "p(z)", "text": "q(z|y)", "true": "q_true", "aggregate": "q_agg", LEARNED_PRIOR: "q(z)"}


@dataclass(frozen=True)
class Guidance:
    """By what a posterior was guided.

    Attributes:
        base: What is guided: a name of ``loaded.posteriors``, or "learned prior".
        weight: w.
        notice: What is to be said of the draws, such as too few candidates; "" if there is nothing.

    Example:
        >>> str(Guidance("aggregate", 3.0))
        'q_agg guided (w = 3)'
    """

    base: str
    weight: float
    notice: str = ""

    def __str__(self) -> str:
        return f"{_SHORT.get(self.base, self.base)} guided (w = {self.weight:g})"
