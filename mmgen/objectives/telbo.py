"""Triple ELBO: the joint bound, plus unimodal bounds that fit q(z|x) and q(z|y) to the frozen decoders.

References:
    Generative Models of Visually Grounded Imagination (Vedantam et al., 2018), Section 2, arXiv:1705.10762
"""

from typing import Annotated

from pydantic import Field

from mmgen.core.batch import Batch
from mmgen.models import Demands, GaussianModel
from mmgen.objectives._base import (
    Bound,
    Objective,
    expected_log_likelihood,
    prior_kl,
    relative_weight,
    warmup_weight,
)

__all__ = ["Telbo"]


class Telbo(Objective, settings=True):
    r"""Sum of three ELBOs, through q(z|x,y), q(z|x) and q(z|y), each of which has its own network.

    .. math:: elbo_{1,\lambda,1}(x, y; \theta, \phi) + elbo_{1,1}(x; \phi_x) + elbo_{\gamma,1}(y; \phi_y)

    In the last two the decoders are frozen: only :math:`\phi_x` and :math:`\phi_y` learn from them.
    """

    observation: str = "image"
    """Modality that is described, x: an image, or data of any other kind."""
    description: str = "attributes"
    """Modality that describes it, y: attributes or text."""
    attributes_weight: Annotated[float, Field(ge=0)] = 50.0
    """lambda_y of the joint bound, of the description whatever it is (VE: best 50)."""
    private_attributes_weight: Annotated[float, Field(ge=0)] = 50.0
    """gamma, weight of log p(y|z) in the bound through q(z|y) (VE: best 50)."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """Weight of all three divergences."""
    kl_warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the divergences are switched on."""

    @property
    def demands(self) -> Demands:
        both = (self.observation, self.description)
        return Demands(frozenset([both, *((side,) for side in both)]), generates=both)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        r"""Return gamma / beta: only the bound elbo_{\gamma,1}(y; \phi_y) fits a posterior to the description alone.

        Over all densities that bound is greatest at p(y|z)^(gamma / beta) p(z), which is what q(z|y) approaches within
        its family. lambda / beta of the joint bound shapes the decoders, and is the same in VE (both 50).
        """
        return relative_weight(self.private_attributes_weight, self.beta)

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        scale = self.beta * warmup_weight(step, self.kl_warmup_steps)
        x, y = self.observation, self.description
        joint = model.posterior(batch, (x, y))
        likelihoods = expected_log_likelihood(model, batch, joint, (x, y))
        from_x, from_y = model.posterior(batch, (x,)), model.posterior(batch, (y,))
        with model.frozen_decoders():
            observed = expected_log_likelihood(model, batch, from_x, (x,))[x]
            described = expected_log_likelihood(model, batch, from_y, (y,))[y]
        kl, kl_x, kl_y = prior_kl(joint), prior_kl(from_x), prior_kl(from_y)
        value = (
            likelihoods[x]
            + self.attributes_weight * likelihoods[y]
            + observed
            + self.private_attributes_weight * described
            - scale * (kl + kl_x + kl_y)
        )
        terms = {
            f"log p({x}|z)": likelihoods[x],
            f"log p({y}|z)": likelihoods[y],
            "kl": kl,
            f"log p({x}|z), z from {x}": observed,
            f"kl, z from {x}": kl_x,
            f"log p({y}|z), z from {y}": described,
            f"kl, z from {y}": kl_y,
        }
        return Bound(value, terms, is_bound=False)
