"""JMVAE: the joint bound, with unimodal posteriors fitted to the joint one.

References:
    Joint Multimodal Learning with Deep Generative Models (Suzuki, Nakayama, Matsuo, 2016), arXiv:1611.01891
    Generative Models of Visually Grounded Imagination (Vedantam et al., 2018), Section 4 and Appendix A.1
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

__all__ = ["Jmvae"]


class Jmvae(Objective, settings=True):
    r"""Joint ELBO minus weighted divergences from q(z|x,y) to q(z|x) and q(z|y), which fit these (VE Eq. 3, CK Eq. 5).

    .. math:: elbo_{1,\lambda,1}(x, y) - \alpha \, [KL(q(z|x,y) \,\|\, q(z|y)) + KL(q(z|x,y) \,\|\, q(z|x))]

    q(z|x,y) is not detached: it is pulled too.
    """

    observation: str = "image"
    """Modality that is described, x: an image, or data of any other kind."""
    description: str = "attributes"
    """Modality that describes it, y: attributes or text."""
    attributes_weight: Annotated[float, Field(ge=0)] = 50.0
    """lambda_y, of the description whatever it is (VE: best 50)."""
    alpha: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the two divergences between posteriors (VE: 1)."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the divergence to the prior."""
    kl_warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the divergence to the prior is switched on."""

    @property
    def demands(self) -> Demands:
        both = (self.observation, self.description)
        return Demands(frozenset([both, *((side,) for side in both)]), generates=both)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        r"""Return lambda / beta of the joint bound.

        The divergences that alpha weighs compare posteriors with each other, and hold neither p(y|z) nor p(z): where
        all three agree they vanish, and what is left, E_q[\lambda log p(y|z)] - \beta KL, has this ratio.
        """
        return relative_weight(self.attributes_weight, self.beta)

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        scale = self.beta * warmup_weight(step, self.kl_warmup_steps)
        x, y = self.observation, self.description
        joint = model.posterior(batch, (x, y))
        likelihoods = expected_log_likelihood(model, batch, joint, (x, y))
        kl = prior_kl(joint)
        to_y = joint.kl(model.posterior(batch, (y,)))
        to_x = joint.kl(model.posterior(batch, (x,)))
        value = likelihoods[x] + self.attributes_weight * likelihoods[y] - scale * kl - self.alpha * (to_y + to_x)
        terms = {
            f"log p({x}|z)": likelihoods[x],
            f"log p({y}|z)": likelihoods[y],
            "kl": kl,
            f"kl to q(z|{y})": to_y,
            f"kl to q(z|{x})": to_x,
        }
        return Bound(value, terms, is_bound=self.attributes_weight == 1 and scale >= 1)
