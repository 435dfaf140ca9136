"""beta-VAE with a capacity: the divergence is held at a number of nats that rises in training.

References:
    Understanding disentangling in beta-VAE (Burgess, Higgins, Pal, Matthey, Watters, Desjardins, Lerchner, 2018),
    arXiv:1804.03599, Eq. 8
"""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.batch import Batch
from mmgen.models._base import Demands, GaussianModel
from mmgen.objectives._base import (
    CONFIG,
    Bound,
    Modalities,
    Objective,
    expected_log_likelihood,
    per_beta,
    prior_kl,
    warmup,
)

__all__ = ["Capacity"]


@dataclass(frozen=True, config=CONFIG)
class Capacity(Objective):
    r"""The likelihood minus how far the divergence is from what it is to be.

    .. math:: E_{q(z|x)}[\log p(x|z)] - \gamma \, |KL(q(z|x) \,\|\, p(z)) - C|  \qquad \text{(Burgess Eq. 8)}

    KL is the mean over the batch, as in the published code of Locatello et al. (2019): single examples may cost more or
    less than C. C rises linearly from 0 to ``capacity``; validation sees the end of the schedule.
    """

    modalities: Modalities = ("image",)
    """What is generated; image alone is the paper's model."""
    given: tuple[str, ...] = ("image",)
    """What the posterior sees."""
    gamma: Annotated[float, Field(ge=0)] = 1000.0
    """Weight of the distance (Burgess: 1000)."""
    capacity: Annotated[float, Field(ge=0)] = 25.0
    """C at the end of the schedule, nats (Burgess on dSprites: 25)."""
    capacity_steps: Annotated[int, Field(ge=1)] = 100_000
    """Steps over which C rises (Burgess: 100,000)."""

    @property
    def demands(self) -> Demands:
        inference = "image-only" if self.given == ("image",) else "joint"
        return Demands(frozenset([self.given]), generates=self.modalities, inference=inference)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """1 / gamma without a capacity; with one the divergence weighs gamma above C and minus gamma below it."""
        return per_beta(1.0, self.gamma) if self.capacity == 0 else None

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        q = model.posterior(batch, self.given)
        likely = expected_log_likelihood(model, batch, q, self.modalities)
        kl, capacity = prior_kl(q), self.capacity * warmup(step, self.capacity_steps)
        value = sum(likely.values()) - self.gamma * (kl.mean() - capacity).abs()
        terms = {f"log p({name}|z)": term for name, term in likely.items()} | {"kl": kl}
        return Bound(value, terms, is_bound=self.capacity == 0 and self.gamma >= 1)
