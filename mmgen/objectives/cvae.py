"""Conditional VAE: images given attributes, p(z) p(image | z, attributes).

References:
    Learning Structured Output Representation using Deep Conditional Generative Models (Sohn, Lee, Yan, 2015)
"""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.core.batch import Batch
from mmgen.models import Demands, GaussianModel
from mmgen.objectives._base import CONFIG, Bound, Objective, expected_log_likelihood, prior_kl, warmup

__all__ = ["Cvae"]


@dataclass(frozen=True, config=CONFIG)
class Cvae(Objective):
    r"""Bound on the conditional log p(x|y); attributes are seen by encoder and decoder and are not generated.

    .. math:: E_{q(z|x,y)}[\log p(x|z,y)] - \beta \, KL(q(z|x,y) \,\|\, p(z))
    """

    beta: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the divergence."""
    kl_warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the divergence is switched on."""

    @property
    def demands(self) -> Demands:
        return Demands(frozenset([("image", "attributes")]), generates=("image",), conditions_on=("attributes",))

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """None: the description is given and not generated, so there is no p(y|z), and p(z|y) is p(z)."""
        return None

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        q = model.posterior(batch, ("image", "attributes"))
        likelihoods = expected_log_likelihood(model, batch, q, ("image",))
        kl = prior_kl(q)
        scale = self.beta * warmup(step, self.kl_warmup_steps)
        return Bound(likelihoods["image"] - scale * kl, {"log p(image|z)": likelihoods["image"], "kl": kl}, scale >= 1)
