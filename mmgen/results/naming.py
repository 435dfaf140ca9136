"""What posteriors are called: the one place that names them, for tables, legends, pages and messages.

Short words ("true", "aggregate") are what a person types and what files say; the names here are what people read. The
weights that a posterior was fitted with are part of its name, for it is another density with another weight.
"""

from dataclasses import dataclass
from typing import TypedDict

__all__ = [
    "LEARNED_PRIOR",
    "Guidance",
    "Weights",
    "guided_name",
    "guided_title",
    "number_of",
    "posterior_called",
    "posterior_name",
    "posterior_title",
]

_NAMES = {
    "prior": "p(z)", "own": "q(z|y)", "true": "q_true", "aggregate": "q_agg", "image": "q(z|x)", "scan": "q_scan",
}  # fmt: skip
_ABOUT = {"prior": "prior", "own": "the model's own", "image": "of images", "scan": "SCAN's, which covers q(z|x)"}
_FORMER = {"text": "own"}


class Weights(TypedDict, total=False):
    """The weights of p(y|z) in a posterior, as far as it has any; see :func:`posterior_name`."""

    text_weight: float
    guidance: float
    balanced: bool


def posterior_called(name: str) -> str:
    """The short word of a posterior, whatever word of earlier versions was typed or stands in a file.

    Example:
        >>> posterior_called("text"), posterior_called("own"), posterior_called("true")
        ('own', 'own', 'true')
    """
    return _FORMER.get(name, name)


def number_of(weight: float) -> str:
    """A weight as it stands in a name: six digits at most.

    Example:
        >>> number_of(300.0), number_of(1 / 3)
        ('300', '0.333333')
    """
    return f"{weight:g}"


def posterior_name(
    posterior: str,
    text_weight: float | None = None,
    guidance: float = 0.0,
    balanced: bool = False,
    *,
    given: str | None = None,
) -> str:
    """Name of a posterior.

    Args:
        posterior: "prior", "own", "true", "aggregate", "scan" or "image"; anything else is its own name.
        text_weight: For "true", the weight of log p(y|z) that it was fitted with; None where nobody says.
        guidance: The power of p(y|z) that tilts it; 0 for none.
        balanced: Whether attributes that are left out keep their shares under guidance.
        given: What kind of description it is conditioned on, where it is a fitted one: "nothing" for q(z).

    Example:
        >>> posterior_name("true", 300.0)
        'q_true(w = 300)'
        >>> posterior_name("true", 1.0)
        'q_true(w = 1), exact'
        >>> posterior_name("aggregate"), posterior_name("aggregate", guidance=3.0)
        ('q_agg', 'q_agg guided (w = 3)')
        >>> posterior_name("aggregate", guidance=3.0, balanced=True)
        'q_agg guided (w = 3, balanced)'
    """
    name = _NAMES.get(posterior, posterior)
    if given == "nothing" and posterior in ("aggregate", "true"):
        name = "q(z)" if posterior == "aggregate" else "q_true(z)"
    elif posterior == "true" and text_weight is not None:
        name = f"q_true(w = {number_of(text_weight)})" + (", exact" if text_weight == 1 else "")
    how = ", balanced" if balanced else ""
    return f"{name} guided (w = {number_of(guidance)}{how})" if guidance else name


def posterior_title(
    posterior: str,
    text_weight: float | None = None,
    guidance: float = 0.0,
    balanced: bool = False,
    *,
    given: str | None = None,
) -> str:
    """Name of a posterior and what it is, as a heading says it; see :func:`posterior_name`.

    Example:
        >>> posterior_title("true", 300.0)
        'q_true(w = 300): fitted to p(y|z)^300 p(z)'
        >>> posterior_title("true", 1.0)
        'q_true(w = 1), exact: fitted to p(z|y)'
        >>> posterior_title("aggregate", guidance=3.0)
        'q_agg guided (w = 3): the aggregate times p(y|z)^3'
        >>> posterior_title("aggregate", given="nothing")
        'q(z): learned prior'
    """
    name = posterior_name(posterior, text_weight, guidance, balanced, given=given)
    about = _ABOUT.get(posterior, "")
    if posterior == "true":
        exact = text_weight is None or text_weight == 1
        about = "fitted to p(z|y)" if exact else f"fitted to p(y|z)^{number_of(text_weight or 0.0)} p(z)"
    elif posterior == "aggregate":
        about = "fitted to the aggregate"
    if given == "nothing" and posterior in ("aggregate", "true"):
        about = "learned prior" if posterior == "aggregate" else "fitted to p(z)"
    if guidance:
        base = (
            "the aggregate"
            if posterior == "aggregate" and given != "nothing"
            else posterior_name(posterior, text_weight, given=given)
        )
        about = f"{base} times p(y|z)^{number_of(guidance)}" + (", what is left out as before" if balanced else "")
    return f"{name}: {about}" if about else name


LEARNED_PRIOR = "learned prior"
"""The base of a posterior guided from an aggregate that is given nothing, q(z)."""


def guided_name(base: str, weight: float, text_weight: float | None = None, balanced: bool = False) -> str:
    """Name of a guided posterior by what is guided, the weight, that of a q_true, and whether it is balanced.

    Example:
        >>> guided_name("aggregate", 3.0), guided_name(LEARNED_PRIOR, 10.0), guided_name("own", 3.0)
        ('q_agg guided (w = 3)', 'q(z) guided (w = 10)', 'q(z|y) guided (w = 3)')
    """
    if base == LEARNED_PRIOR:
        return posterior_name("aggregate", None, weight, balanced, given="nothing")
    return posterior_name(base, text_weight, weight, balanced)


def guided_title(base: str, weight: float, text_weight: float | None = None, balanced: bool = False) -> str:
    """Its name and what it is, as a heading says it."""
    if base == LEARNED_PRIOR:
        return posterior_title("aggregate", None, weight, balanced, given="nothing")
    return posterior_title(base, text_weight, weight, balanced)


@dataclass(frozen=True)
class Guidance:
    """By what a posterior was guided.

    Attributes:
        base: What is guided: a name of ``loaded.posteriors``, or "learned prior".
        weight: w.
        notice: What is to be said of the draws, such as too few candidates; "" if there is nothing.
        text_weight: For a guided q_true, the weight that it was fitted with.
        balanced: Whether attributes that are left out keep their shares.

    Example:
        >>> str(Guidance("aggregate", 3.0))
        'q_agg guided (w = 3)'
    """

    base: str
    weight: float
    notice: str = ""
    text_weight: float | None = None
    balanced: bool = False

    def __str__(self) -> str:
        return guided_name(self.base, self.weight, self.text_weight, self.balanced)
