r"""The guided aggregate :math:`q_w(z|y) \propto q_{agg}(z|y) \, p(y|z)^w`, fitted, so that nothing is resampled later.

CK Eq. 5 fits q(z|y) to encodings of images with the words y, which are draws of q_agg(z|y). Were each of them weighed
by p(y|z)^w / Z(y), Z(y) being the mean of p(y|z)^w under q_agg(z|y), the same equation would have its maximum at q_w.
Z(y) must not come from the encoding that it divides: most captions have a single image, whose weight would be 1, and
nothing would be guided; without Z(y) a few easy descriptions would have all the weight. So q_agg is fitted first,
which gives any number of draws for any description, a caption as well as attributes of which some are unknown: of M
candidates one is chosen with probability proportional to p(y|z)^w (sampling importance resampling), and q(z|y) is
fitted to what is chosen. Every description counts alike and no weight exceeds 1. The bias is of the order of one over
the effective number of candidates, which the training log tells (its logarithm); and q_w can be no better than the
q_agg that it tilts. The fit starts from that q_agg, where it would stay with w = 0.

References:
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Eq. 5
    A noniterative sampling/importance resampling alternative to data augmentation (Rubin, 1987)
    Latent Constraints (Engel, Hoffman, Roberts, 2018), arXiv:1711.05772
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mmgen.aggregates._base import Aggregate
from mmgen.aggregates._targets import drop_attributes
from mmgen.core.batch import Batch
from mmgen.modalities.attributes import Attributes
from mmgen.models import Model
from mmgen.objectives import Bound
from mmgen.training.task import ALONE, Task

__all__ = ["GuidedTask", "candidates", "few_candidates"]

_CHOSEN = 8
"""Draws from the candidates of one description: candidates cost more than the draws that are learned from."""


_EFFECTIVE = "log of effective candidates"
_FEW = 8
"""Effective candidates below which a fit says that there are few: the bias is of the order of one over them."""


def few_candidates(facts: Mapping[str, Any], number: int) -> str:
    """A notice of a fit whose draws were chosen from too few candidates; "" where there were enough.

    Args:
        facts: Facts of the finished file.
        number: M.
    """
    terms = facts.get("validation_terms")
    found = terms.get(_EFFECTIVE) if isinstance(terms, Mapping) else None
    if not isinstance(found, int | float) or math.exp(found) >= _FEW:
        return ""
    return (
        f"of {number} candidates {math.exp(found):.1f} count on held-out descriptions (effective number, its geometric "
        f"mean), so that this is nearer to q_agg than asked; with more: --set aggregate.candidates={4 * number}"
    )


def candidates(base: Aggregate, model: Model, batch: Batch, guidance: float, number: int) -> tuple[Tensor, Tensor]:
    """Draws of q(z|y) [M, B, D] for each description, and the logarithms of their shares p(y|z)^w / sum [M, B]."""
    assert base.condition is not None
    z = base.sample(batch, number)
    log_likelihood = model.log_likelihood(base.condition.name, z, batch)
    return z, (guidance * log_likelihood).log_softmax(0)


class GuidedTask(Task):
    """Fits an aggregate to draws of a fitted one that are chosen by the frozen model's p(y|z)^w.

    Args:
        aggregate: What is fitted; a copy of ``base`` to begin with.
        base: The fitted q_agg(z|y), which stays as it is.
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
        number: int,
    ) -> None:
        super().__init__()
        self.aggregate = aggregate
        self.keep_all = keep_all
        self.guidance = guidance
        self.number = number
        # In a list, so that what is frozen is neither trained nor saved with the aggregate.
        self._frozen = (base, model)

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """E log q(z|y) over z ~ q_w, nats, each description with eight draws.

        A step learns from an eighth of its descriptions, value [B / 8]; validation looks at all of them, value [B], an
        eighth at a time, so that neither needs more memory than the other.
        """
        eighth = max(1, batch.size // _CHOSEN)
        if step is not None:
            return self._of(batch[:eighth])
        parts = [self._of(batch[start : start + eighth]) for start in range(0, batch.size, eighth)]
        terms = {name: torch.cat([part.terms[name] for part in parts]) for name in parts[0].terms}
        return Bound(torch.cat([part.value for part in parts]), terms)

    def _of(self, batch: Batch) -> Bound:
        """The value of every description of a batch [B]."""
        base, model = self._frozen
        condition = self.aggregate.condition
        if isinstance(condition, Attributes):
            batch = drop_attributes(batch, condition.name, self.keep_all)
        with torch.no_grad():
            z, log_share = candidates(base, model, batch, self.guidance, self.number)
            chosen = torch.multinomial(log_share.exp().T.float(), _CHOSEN, replacement=True).T  # [8, B]
            picked = z.gather(0, chosen.unsqueeze(-1).expand(-1, -1, z.shape[-1]))
            effective = -(2 * log_share).logsumexp(0)
        log_q = self.aggregate.log_prob(picked, batch).mean(0)
        return Bound(log_q, {"log q(z|y)": log_q, _EFFECTIVE: effective})

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.aggregate.state_dict())
