"""Names of posteriors, as tables, legends, pages and messages print them.

Files and options have short words ("true", "aggregate"). The names for people include the weights that a posterior was
fitted with, since another weight gives another density.
"""

from dataclasses import dataclass
from typing import TypedDict

__all__ = [
    "CONDITIONAL",
    "LEARNED_PRIOR",
    "RETRIEVAL",
    "GuidanceReport",
    "Weights",
    "format_weight",
    "guidance_label",
    "option_of_posterior",
    "plain_posterior_name",
    "posterior_name",
    "posterior_title",
]

LEARNED_PRIOR = "learned prior"
"""Name of the posterior q(z), which is fitted to all images and conditioned on nothing."""

CONDITIONAL = "plain conditional VAE"
"""Name of the prior of a model whose decoder receives the words."""

RETRIEVAL = "retrieval"
"""Name of the baseline that retrieves training pictures, in the place of a posterior."""

_NAMES = {
    "prior": "p(z)", "own": "q(z|y)", "true": "q_true", "aggregate": "q_agg", "image": "q(z|x)", "scan": "q_scan",
    LEARNED_PRIOR: "q(z)",
}  # fmt: skip
_ABOUT = {
    "prior": "prior", "own": "the model's own", "image": "of images", "scan": "SCAN's, which covers q(z|x)",
    "aggregate": "fitted to the aggregate", LEARNED_PRIOR: LEARNED_PRIOR,
    CONDITIONAL: "p(z), the words go to the decoder",
    RETRIEVAL: "training pictures whose words fit best",
}  # fmt: skip
_PLAIN = {
    "prior": "no words", "own": "what the encoder makes of the words", "true": "what the model believes",
    "aggregate": "where real pictures lie", "image": "what the encoder sees in the picture",
    "scan": "where SCAN expects pictures", LEARNED_PRIOR: "where all real pictures lie",
    RETRIEVAL: "real pictures with these words", CONDITIONAL: "a plain conditional VAE",
}  # fmt: skip


class Weights(TypedDict, total=False):
    """Arguments of :func:`posterior_name` that weight p(y|z) in a posterior: in its fit, and by its guidance."""

    text_weight: float
    guidance: float
    method: str


def format_weight(weight: float) -> str:
    """Format the weight in a posterior's name, with at most six digits.

    Example:
        >>> format_weight(300.0), format_weight(1 / 3)
        ('300', '0.333333')
    """
    return f"{weight:g}"


def option_of_posterior(name: str) -> str:
    """Return what ``--posterior`` calls the posterior that tables print as ``name``, with or without weights, else "".

    Example:
        >>> option_of_posterior("q_true(w = 300)"), option_of_posterior("q_agg"), option_of_posterior("q")
        ('true', 'aggregate', '')
    """
    plain = name.partition("(w")[0].partition(" guided")[0]
    return next((option for option, printed in _NAMES.items() if printed == plain), "")


def posterior_name(
    posterior: str,
    text_weight: float | None = None,
    guidance: float = 0.0,
    method: str = "",
    *,
    given: str | None = None,
) -> str:
    """Return the name of a posterior for tables, such as "q_agg guided (w = 3)".

    Args:
        posterior: "prior", "own", "true", "aggregate", "learned prior", "scan", "image" or "plain conditional VAE";
            anything else is its own name. For a guided posterior, the name of its base.
        text_weight: For "true", the weight of log p(y|z) in its fit; None if not recorded.
        guidance: The power of p(y|z) that tilts it; 0 for none.
        method: Method of guidance: "" for p(y|z)^w, "cfg" for classifier-free guidance and "gradient" for that of
            p(y|z) on the path of a flow, perhaps with the part of the path: "cfg:start=0.2:end=0.8".
        given: Kind of description that a fitted posterior is conditioned on: "nothing" for q(z).

    Example:
        >>> posterior_name("true", 300.0), posterior_name("true", 1.0)
        ('q_true(w = 300)', 'q_true(w = 1), exact')
        >>> posterior_name("aggregate"), posterior_name("learned prior", guidance=3.0)
        ('q_agg', 'q(z) guided (w = 3)')
        >>> posterior_name("aggregate", guidance=0.5, method="cfg")
        'q_agg guided (cfg 0.5)'
    """
    name = _NAMES.get(posterior, posterior)
    if given == "nothing" and posterior in ("aggregate", "true"):
        name = "q(z)" if posterior == "aggregate" else "q_true(z)"
    elif posterior == "true" and text_weight is not None:
        name = f"q_true(w = {format_weight(text_weight)})" + (", exact" if text_weight == 1 else "")
    return f"{name} guided ({guidance_label(guidance, method)})" if guidance else name


def guidance_label(weight: float, method: str = "") -> str:
    """Format weight and method of guidance for a posterior's name: "w = 3" or "cfg 0.5".

    Example:
        >>> guidance_label(1.0, "cfg:start=0.2:end=0.8")
        'cfg 1, start 0.2, end 0.8'
    """
    name, *options = method.split(":")
    steers = name in ("cfg", "gradient")
    first = f"{name} {format_weight(weight)}" if steers else f"w = {format_weight(weight)}"
    return ", ".join([first, *(option.replace("=", " ") for option in options)])


def posterior_title(
    posterior: str,
    text_weight: float | None = None,
    guidance: float = 0.0,
    method: str = "",
    *,
    given: str | None = None,
) -> str:
    """Return a posterior's name and explanation for a heading; arguments as in :func:`posterior_name`.

    Example:
        >>> posterior_title("true", 300.0)
        'q_true(w = 300): fitted to p(y|z)^300 p(z)'
        >>> posterior_title("aggregate", guidance=3.0)
        'q_agg guided (w = 3): the aggregate times p(y|z)^3'
        >>> posterior_title("aggregate", given="nothing")
        'q(z): learned prior'
    """
    name = posterior_name(posterior, text_weight, guidance, method, given=given)
    about = _ABOUT.get(posterior, "")
    if posterior == "true":
        exact = text_weight is None or text_weight == 1
        about = "fitted to p(z|y)" if exact else f"fitted to p(y|z)^{format_weight(text_weight or 0.0)} p(z)"
    if given == "nothing" and posterior in ("aggregate", "true"):
        about = LEARNED_PRIOR if posterior == "aggregate" else "fitted to p(z)"
    if guidance:
        is_aggregate = posterior == "aggregate" and given != "nothing"
        base = "the aggregate" if is_aggregate else posterior_name(posterior, text_weight, given=given)
        about = f"{base} times p(y|z)^{format_weight(guidance)}"
        if method.startswith("cfg"):
            about = f"{base} by classifier-free guidance"
        if method.startswith("gradient"):
            about = f"{base} with the gradient of {format_weight(guidance)} log p(y|z) on the path of its draws"
    return f"{name}: {about}" if about else name


def plain_posterior_name(
    posterior: str,
    text_weight: float | None = None,
    guidance: float = 0.0,
    method: str = "",
    *,
    given: str | None = None,
) -> str:
    """Return the name of a posterior in plain words, without formulas; arguments as in :func:`posterior_name`.

    Different posteriors can have the same plain name, so :func:`posterior_title` belongs beneath it.

    Example:
        >>> plain_posterior_name("true", 1.0), plain_posterior_name("true", 300.0)
        ('what the model believes', 'what the model believes, words counting 300 times')
        >>> plain_posterior_name("aggregate"), plain_posterior_name("aggregate", guidance=3.0)
        ('where real pictures lie', 'where real pictures lie, and the model agrees')
    """
    name = _PLAIN.get(posterior, posterior)
    if given == "nothing" and posterior in ("aggregate", "true"):
        name = _PLAIN[LEARNED_PRIOR if posterior == "aggregate" else "prior"]
    elif posterior == "true" and text_weight not in (None, 1):
        name += f", words counting {format_weight(text_weight or 0.0)} times"
    if not guidance:
        return name
    return f"{name}, pushed towards the words" if method.startswith("cfg") else f"{name}, and the model agrees"


@dataclass(frozen=True)
class GuidanceReport:
    """Report on the guidance of a posterior for captions and messages: weight, method, and a warning about the draws.

    Attributes:
        base: Name of the guided posterior among ``loaded.posteriors``, or "learned prior".
        weight: w, the power of p(y|z).
        notice: A warning about the draws, such as too few candidates; "" for none.
        text_weight: For a guided q_true, the weight of its fit.
        method: Method of guidance, see :func:`posterior_name`.

    Example:
        >>> str(GuidanceReport("aggregate", 3.0))
        'q_agg guided (w = 3)'
    """

    base: str
    weight: float
    notice: str = ""
    text_weight: float | None = None
    method: str = ""

    def __str__(self) -> str:
        return posterior_name(self.base, self.text_weight, self.weight, self.method)
