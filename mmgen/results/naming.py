"""Names of posteriors, as tables, legends, pages and messages print them.

Files and options have short words ("true", "aggregate"). The names for people include the weights that a posterior was
fitted with, since another weight gives another density.
"""

from dataclasses import dataclass, replace
from typing import Self, TypedDict

LEARNED_PRIOR = "learned prior"
"""Name of the posterior q(z), which is fitted to all images and conditioned on nothing."""

CONDITIONAL = "plain conditional VAE"
"""Name of the prior of a model whose decoder receives the words."""

RETRIEVAL = "retrieval"
"""Name of the baseline that retrieves training pictures, in the place of a posterior."""

_NAMES = {
    "prior": ("p(z)", "prior", "no words"),
    "own": ("q(z|y)", "the model's own", "what the encoder makes of the words"),
    "true": ("q_true", "fitted to p(z|y)", "what the model believes"),
    "true prior": ("q_true(z)", "fitted to p(z)", "no words"),
    "aggregate": ("q_agg", "fitted to the aggregate", "where real pictures lie"),
    "image": ("q(z|x)", "of images", "what the encoder sees in the picture"),
    "scan": ("q_scan", "SCAN's, which covers q(z|x)", "where SCAN expects pictures"),
    LEARNED_PRIOR: ("q(z)", LEARNED_PRIOR, "where all real pictures lie"),
    CONDITIONAL: (CONDITIONAL, "its own prior, the words go to the decoder", "a plain conditional VAE"),
    RETRIEVAL: (RETRIEVAL, "training pictures whose words fit best", "real pictures with these words"),
}
"""Symbol, explanation and plain words of each posterior."""


class Weights(TypedDict, total=False):
    """Fields of :class:`PosteriorName` that weight p(y|z) in a posterior: in its fit, and by its guidance."""

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


def guidance_label(weight: float, method: str = "") -> str:
    """Format weight and method of guidance for a posterior's name: "w = 3" or "cfg 0.5".

    Example:
        >>> guidance_label(1.0, "cfg:start=0.2:end=0.8")
        'cfg 1, start 0.2, end 0.8'
    """
    name, *options = method.split(":")
    first = f"{name} {format_weight(weight)}" if name else f"w = {format_weight(weight)}"
    return ", ".join([first, *(option.replace("=", " ") for option in options)])


@dataclass(frozen=True)
class PosteriorName:
    """What a posterior is called: its density before guidance, and the weights of p(y|z) in its fit and by guidance.

    Attributes:
        base: "prior", "own", "true", "aggregate", "learned prior", "scan", "image" or "plain conditional VAE"; anything
            else is its own name.
        text_weight: For "true", the weight of log p(y|z) in its fit; None if not recorded.
        guidance: The power of p(y|z) that tilts it; 0 for none.
        method: Method of guidance: "" for p(y|z)^w, "cfg" for classifier-free guidance and "gradient" for that of
            p(y|z) on the path of a flow, perhaps with the part of the path: "cfg:start=0.2:end=0.8".

    Example:
        >>> str(PosteriorName("true", 300.0)), str(PosteriorName("true", 1.0))
        ('q_true(w = 300)', 'q_true(w = 1), exact')
        >>> str(PosteriorName("aggregate")), str(PosteriorName("learned prior", guidance=3.0))
        ('q_agg', 'q(z) guided (w = 3)')
    """

    base: str
    text_weight: float | None = None
    guidance: float = 0.0
    method: str = ""

    @classmethod
    def of_fit(cls, posterior: str, weights: Weights, is_conditional: bool) -> Self:
        """Return the name of a fitted posterior, such as that of a learned prior for one that reads no description."""
        unconditional = "true prior" if posterior == "true" else LEARNED_PRIOR
        return cls(posterior if is_conditional else unconditional, **weights)

    def __str__(self) -> str:
        name = self._described[0]
        if self.base == "true" and self.text_weight is not None:
            name += f"(w = {format_weight(self.text_weight)})" + (", exact" if self.text_weight == 1 else "")
        return f"{name} guided ({guidance_label(self.guidance, self.method)})" if self.guidance else name

    @property
    def title(self) -> str:
        """Name with an explanation, for a heading.

        Example:
            >>> PosteriorName("true", 300.0).title
            'q_true(w = 300): fitted to p(y|z)^300 p(z)'
            >>> PosteriorName("aggregate", guidance=3.0).title
            'q_agg guided (w = 3): the aggregate times p(y|z)^3'
        """
        about = self._described[1]
        if self.guidance:
            unguided = "the aggregate" if self.base == "aggregate" else str(replace(self, guidance=0.0))
            about = f"{unguided} {self._about_guidance}"
        elif self._is_weighted:
            about = f"fitted to p(y|z)^{format_weight(self.text_weight or 0.0)} p(z)"
        return f"{self}: {about}" if about else str(self)

    @property
    def plain(self) -> str:
        """Name in plain words, without formulas; different posteriors can share it, so the title belongs beneath it.

        Example:
            >>> PosteriorName("true", 1.0).plain, PosteriorName("true", 300.0).plain
            ('what the model believes', 'what the model believes, words counting 300 times')
            >>> PosteriorName("aggregate", guidance=3.0).plain
            'where real pictures lie, and the model agrees'
        """
        name = self._described[2]
        if self._is_weighted:
            name += f", words counting {format_weight(self.text_weight or 0.0)} times"
        if not self.guidance:
            return name
        return f"{name}, pushed towards the words" if self.method.startswith("cfg") else f"{name}, and the model agrees"

    @property
    def _described(self) -> tuple[str, str, str]:
        return _NAMES.get(self.base, (self.base, "", self.base))

    @property
    def _is_weighted(self) -> bool:
        return self.base == "true" and self.text_weight not in (None, 1)

    @property
    def _about_guidance(self) -> str:
        if self.method.startswith("cfg"):
            return "by classifier-free guidance"
        if self.method.startswith("gradient"):
            return f"with the gradient of {format_weight(self.guidance)} log p(y|z) on the path of its draws"
        return f"times p(y|z)^{format_weight(self.guidance)}"
