r"""Target: the guided aggregated posterior :math:`q_w(z|y) \propto q_{agg}(z|y) \, p(y|z)^w`, fitted once.

CK Eq. 5 fits q(z|y) to encodings of images with the words y, which are draws of q_agg(z|y). If each of them were
weighted by p(y|z)^w / Z(y), with Z(y) the mean of p(y|z)^w under q_agg(z|y), the same equation would have its maximum
at q_w. Z(y) must not come from the encoding that it divides: most captions have a single image, whose weight would be
1, and nothing would be guided. Without Z(y) a few easy descriptions would have all the weight. So q_agg is fitted
first. It gives any number of draws for any description, for a caption as well as for attributes of which some are
unknown. One of M candidates is chosen with probability proportional to p(y|z)^w (sampling importance resampling), and
q(z|y) is fitted to the chosen draws. Every description counts alike and no weight exceeds 1. The bias is of the order
of one over the effective number of candidates, whose logarithm is in the training log; and q_w can be no better than
the q_agg that it tilts. The fit starts from that q_agg, where it would stay with w = 0.

References:
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Eq. 5
    A noniterative sampling/importance resampling alternative to data augmentation (Rubin, 1987)
    Latent Constraints (Engel, Hoffman, Roberts, 2018), arXiv:1711.05772
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import torch
from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.models import Model
from mmgen.objectives import CONFIG, Bound
from mmgen.posteriors._aggregate import Aggregate
from mmgen.posteriors._base import DensityTask, FitParts, Request, Target
from mmgen.posteriors._guidance import MOST
from mmgen.posteriors.aggregate import AggregatedTarget
from mmgen.results.naming import Weights, format_weight
from mmgen.training.task import ALONE, Task

__all__ = ["GuidedTarget"]

_CHOSEN = 8
"""Number of draws from the candidates of one description."""
_EFFECTIVE = "log of effective candidates"
_FEW = 8
"""Effective number of candidates below which there is a warning: the bias is of the order of one over it."""


def few_candidates_warning(facts: Mapping[str, Any], target: Target) -> str:
    """Return a warning about a fit whose candidates were too few; "" if there were enough.

    Args:
        facts: Facts in the header of the finished file.
        target: The target of the fit.
    """
    if not isinstance(target, GuidedTarget):
        return ""
    terms = facts.get("validation_terms")
    effective = terms.get(_EFFECTIVE) if isinstance(terms, Mapping) else None
    if not isinstance(effective, int | float) or math.exp(effective) >= _FEW:
        return ""
    return (
        f"the effective number of {target.candidates} candidates is {math.exp(effective):.1f} on held-out descriptions "
        "(geometric mean), so that this fit is nearer to q_agg than it should be; use more: "
        f"--set aggregate.target.candidates={4 * target.candidates}"
    )


def draw_candidates(base: Aggregate, model: Model, batch: Batch, guidance: float, count: int) -> tuple[Tensor, Tensor]:
    """Draw M candidates z [M, B, D] from q(z|y) for each description, with normalised log weights [M, B]."""
    assert base.condition is not None
    z = base.sample(batch, count)
    log_likelihood = model.log_likelihood(base.condition.name, z, batch)
    return z, (guidance * log_likelihood).log_softmax(0)


class GuidedTask(DensityTask):
    """Training task that fits a density to draws of a fitted one, weighted by the frozen model's p(y|z)^w.

    Args:
        aggregate: The density to fit; at first a copy of ``base``.
        base: The fitted q_agg(z|y), which stays unchanged.
        model: The frozen model.
        keep_all: Probability that a description stays whole.
        guidance: w.
        number: M, candidates of each description.
    """

    def __init__(
        self,
        aggregate: Aggregate,
        base: Aggregate,
        model: Model,
        keep_all: float,
        guidance: float,
        candidate_count: int,
    ) -> None:
        super().__init__(aggregate, keep_all)
        self.guidance = guidance
        self.candidate_count = candidate_count
        # In a tuple, so that frozen weights are neither trained nor saved with the aggregate.
        self._frozen = (base, model)

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return E log q(z|y) over z ~ q_w in nats, or minus the family's loss, from eight draws for each description.

        A step uses an eighth of its descriptions, value [B / 8]. Validation uses all of them, value [B], an eighth at a
        time, so both need the same memory.
        """
        eighth = max(1, batch.size // _CHOSEN)
        if step is not None:
            return self._value_by_description(batch[:eighth])
        parts = [self._value_by_description(batch[start : start + eighth]) for start in range(0, batch.size, eighth)]
        terms = {name: torch.cat([part.terms[name] for part in parts]) for name in parts[0].terms}
        return Bound(torch.cat([part.value for part in parts]), terms)

    def _value_by_description(self, batch: Batch) -> Bound:
        """Return the value [B] of each description of a batch."""
        base, model = self._frozen
        batch = self.hide_attributes(batch)
        with torch.no_grad():
            z, log_share = draw_candidates(base, model, batch, self.guidance, self.candidate_count)
            chosen = torch.multinomial(log_share.exp().T.float(), _CHOSEN, replacement=True).T  # [8, B]
            picked = z.gather(0, chosen.unsqueeze(-1).expand(-1, -1, z.shape[-1]))
            effective = -(2 * log_share).logsumexp(0)
        if not self.aggregate.by_likelihood:
            value = self.aggregate.training_value(self.aggregate.select_layers(picked), batch).mean(0)
            return Bound(value, {_EFFECTIVE: effective})
        log_q = self.aggregate.log_prob(picked, batch).mean(0)
        return Bound(log_q, {"log q(z|y)": log_q, _EFFECTIVE: effective})


def _parse_guidance(value: Any) -> Any:
    """Convert a setting to a weight above 0, or refuse it."""
    if isinstance(value, str) and ":" in value:
        raise ValueError(
            f"got {value!r}, expected a number without options, such as 3; set the number of "
            "candidates by --set aggregate.target.candidates"
        )
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number <= MOST:
        raise ValueError(f"got {value!r}, expected a number above 0, at most {MOST:,.0f}")
    return number


@dataclass(frozen=True, config=CONFIG)
class GuidedTarget(Target):
    """Target: the aggregated posterior times the model's own p(y|z)^w."""

    posterior: ClassVar[str] = "aggregate"

    guidance: Annotated[float, BeforeValidator(_parse_guidance)] = 3.0
    """Power w of p(y|z) that tilts q_agg."""
    candidates: Annotated[int, Field(ge=2)] = 64
    """M, draws of q_agg from which each draw of the guided density is chosen."""

    @property
    def weights(self) -> Weights:
        return {"guidance": self.guidance}

    @property
    def base(self) -> Target:
        return AggregatedTarget()

    @property
    def file_name_parts(self) -> list[str]:
        return [f"guided-w{format_weight(self.guidance)}"]

    def complete_settings(self, request: Request) -> Self:
        given, refused = request.given, f"--guidance got {self.guidance:g}"
        if request.description is None:
            raise UsageError(
                f"{refused} with --given nothing, expected attributes or text, by which to guide; leave --guidance "
                "or --given out"
            )
        if not request.is_generated:
            raise UsageError(
                f"{refused}, which needs p({given} | z), but this model generates no {given}; leave it out, or use "
                f"a model that generates {given}"
            )
        return self

    def build_task(self, parts: FitParts) -> Task:
        aggregate, base, model, keep_all, *_ = parts
        assert base is not None, "a guided fit starts from q_agg"
        return GuidedTask(aggregate, base, model, keep_all, self.guidance, self.candidates)
