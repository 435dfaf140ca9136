"""InfoVAE: a bound whose divergence is traded for the distance between the aggregated posterior and the prior.

References:
    InfoVAE: Balancing Learning and Inference in Variational Autoencoders (Zhao, Song, Ermon, 2019), arXiv:1706.02262,
    Eq. 6
"""

from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.models import Demands, Model
from mmgen.objectives import CONFIG, Bound, Modalities, Objective

__all__ = ["MmdVae"]


@dataclass(frozen=True, config=CONFIG)
class MmdVae(Objective):
    r"""ELBO with part of the KL divergence replaced by the maximum mean discrepancy.

    .. math:: E_q[\log p(x|z)] - (1 - \alpha) KL(q(z|x) \,\|\, p(z)) - (\alpha + \lambda - 1) MMD(q(z), p(z))
    """

    modalities: Modalities = ("sound",)
    """Modalities that are generated."""
    given: tuple[str, ...] = ("sound",)
    """Modalities that the posterior reads."""
    alpha: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of the divergence that is left out."""
    scale: Annotated[float, Field(ge=1)] = 10.0
    """lambda, weight of the discrepancy."""

    @property
    def demands(self) -> Demands:
        """q(z | given), and the decoders of what is generated."""
        return Demands(frozenset([self.given]), generates=self.modalities)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return None: no single number weighs the likelihood against the two penalties."""
        return None

    def __call__(self, model: Model, batch: Batch, step: int | None = None) -> Bound:
        """Return the objective on a batch, nats [B]."""
        trace = model.trace(batch, self.given, names=self.modalities)
        prior = model.posterior(batch, ()).sample()
        distance = _discrepancy(trace.z, prior).expand(batch.size)
        likely = trace.expected_log_likelihood
        value = (
            sum(likely.values()) - (1 - self.alpha) * trace.total_divergence - (self.alpha + self.scale - 1) * distance
        )
        return Bound(value, {f"log p({name}|z)": term for name, term in likely.items()} | {"mmd": distance})


def _discrepancy(one: Tensor, other: Tensor) -> Tensor:
    def kernel(a: Tensor, b: Tensor) -> Tensor:
        return torch.exp(-(a[:, None] - b).square().mean(-1)).mean()

    return kernel(one, one) + kernel(other, other) - 2 * kernel(one, other)
