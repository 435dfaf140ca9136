"""Names of posteriors for tables, legends, pages and messages.

Files and options have short words ("true", "aggregate"). People read the names here, which include the weights that a
posterior was fitted with: another weight is another density.
"""

from dataclasses import dataclass
from typing import TypedDict

__all__ = ["LEARNED_PRIOR", "GuidanceReport", "Weights", "number_of", "posterior_name", "posterior_title"]

LEARNED_PRIOR = "learned prior"
"""The posterior q(z), fitted to all images and conditioned on nothing."""

_NAMES = {
    "prior": "p(z)", "own": "q(z|y)", "true": "q_true", "aggregate": "q_agg", "image": "q(z|x)", "scan": "q_scan",
    LEARNED_PRIOR: "q(z)",
}  # fmt: skip
_ABOUT = {
    "prior": "prior", "own": "the model's own", "image": "of images", "scan": "SCAN's, which covers q(z|x)",
    "aggregate": "fitted to the aggregate", LEARNED_PRIOR: LEARNED_PRIOR,
}  # fmt: skip


class Weights(TypedDict, total=False):
    """Weights of p(y|z) in a posterior: those of its fit and of its guidance; see :func:`posterior_name`."""

    text_weight: float
    guidance: float
    balanced: bool


def number_of(weight: float) -> str:
    """Return a weight as it stands in a name: six digits at most.

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
    """Return the name of a posterior.

    Args:
        posterior: "prior", "own", "true", "aggregate", "learned prior", "scan" or "image"; anything else is its own
            name. For a guided posterior, what is guided.
        text_weight: For "true", the weight of log p(y|z) that it was fitted with; None where it is not recorded.
        guidance: The power of p(y|z) that tilts it; 0 for none.
        balanced: Whether attributes that are left out keep their shares under guidance.
        given: Kind of description that a fitted posterior is conditioned on: "nothing" for q(z).

    Example:
        >>> posterior_name("true", 300.0), posterior_name("true", 1.0)
        ('q_true(w = 300)', 'q_true(w = 1), exact')
        >>> posterior_name("aggregate"), posterior_name("learned prior", guidance=3.0, balanced=True)
        ('q_agg', 'q(z) guided (w = 3, balanced)')
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
    """Return the name of a posterior and what it is, for a heading; arguments as in :func:`posterior_name`.

    Example:
        >>> posterior_title("true", 300.0)
        'q_true(w = 300): fitted to p(y|z)^300 p(z)'
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
    if given == "nothing" and posterior in ("aggregate", "true"):
        about = LEARNED_PRIOR if posterior == "aggregate" else "fitted to p(z)"
    if guidance:
        is_aggregate = posterior == "aggregate" and given != "nothing"
        base = "the aggregate" if is_aggregate else posterior_name(posterior, text_weight, given=given)
        about = f"{base} times p(y|z)^{number_of(guidance)}" + (", what is left out as before" if balanced else "")
    return f"{name}: {about}" if about else name


@dataclass(frozen=True)
class GuidanceReport:
    """Guidance of a posterior, for captions and messages.

    Attributes:
        base: The posterior that is guided: a name of ``loaded.posteriors``, or "learned prior".
        weight: w.
        notice: A warning about the draws, such as too few candidates; "" for none.
        text_weight: For a guided q_true, the weight that it was fitted with.
        balanced: Whether attributes that are left out keep their shares.

    Example:
        >>> str(GuidanceReport("aggregate", 3.0))
        'q_agg guided (w = 3)'
    """

    base: str
    weight: float
    notice: str = ""
    text_weight: float | None = None
    balanced: bool = False

    def __str__(self) -> str:
        return posterior_name(self.base, self.text_weight, self.weight, self.balanced)
