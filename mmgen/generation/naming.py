"""What guided posteriors are called."""

from dataclasses import dataclass

from mmgen.aggregates._naming import posterior_name, posterior_title

__all__ = ["LEARNED_PRIOR", "Guidance", "guided_name", "guided_title"]

LEARNED_PRIOR = "learned prior"
"""The base of a posterior guided from an aggregate that is given nothing, q(z)."""


def guided_name(base: str, weight: float, text_weight: float | None = None) -> str:
    """Name of a guided posterior by what is guided, the weight, and that of a q_true.

    Example:
        >>> guided_name("aggregate", 3.0), guided_name(LEARNED_PRIOR, 10.0), guided_name("text", 3.0)
        ('q_agg guided (w = 3)', 'q(z) guided (w = 10)', 'q(z|y) guided (w = 3)')
    """
    if base == LEARNED_PRIOR:
        return posterior_name("aggregate", guidance=weight, given="nothing")
    return posterior_name(base, text_weight, weight)


def guided_title(base: str, weight: float, text_weight: float | None = None) -> str:
    """Its name and what it is, as a heading says it."""
    if base == LEARNED_PRIOR:
        return posterior_title("aggregate", guidance=weight, given="nothing")
    return posterior_title(base, text_weight, weight)


@dataclass(frozen=True)
class Guidance:
    """By what a posterior was guided.

    Attributes:
        base: What is guided: a name of ``loaded.posteriors``, or "learned prior".
        weight: w.
        notice: What is to be said of the draws, such as too few candidates; "" if there is nothing.
        text_weight: Of a guided q_true, the weight that it was fitted with.

    Example:
        >>> str(Guidance("aggregate", 3.0))
        'q_agg guided (w = 3)'
    """

    base: str
    weight: float
    notice: str = ""
    text_weight: float | None = None

    def __str__(self) -> str:
        return guided_name(self.base, self.weight, self.text_weight)
