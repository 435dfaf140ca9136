"""beta-VAE with a capacity: the divergence is held at a number of nats that rises in training.

References:
    Understanding disentangling in beta-VAE (Burgess, Higgins, Pal, Matthey, Watters, Desjardins, Lerchner, 2018),
    arXiv:1804.03599, Eq. 8
"""

from typing import Annotated, ClassVar

from pydantic import Field

from mmgen.core.batch import Batch
from mmgen.models import Demands, Model
from mmgen.objectives._base import (
    Bound,
    Modalities,
    Objective,
    RunSettings,
    check_single_device,
    relative_weight,
    warmup_weight,
)

__all__ = ["Capacity"]


class Capacity(Objective, settings=True):
    r"""Log-likelihood minus the weighted distance of the divergence from its target, the capacity C.

    .. math:: E_{q(z|x)}[\log p(x|z)] - \gamma \, |KL(q(z|x) \,\|\, p(z)) - C|  \qquad \text{(Burgess Eq. 8)}

    KL is the mean over the batch, as in the published code of Locatello et al. (2019): single examples may cost more or
    less than C. C rises linearly from 0 to ``capacity``; validation sees the end of the schedule. The distance is one
    number for each batch, and gamma times the noise of a mean divergence is larger than what separates good weights
    from better ones. So the last weights are kept, validation reports no error of the value, and its terms, which are
    of single examples, tell what it is made of.
    """

    selects: ClassVar[bool] = False

    modalities: Modalities = ("image",)
    """What is generated; image alone is the paper's model."""
    given: tuple[str, ...] = ("image",)
    """What the posterior sees."""
    gamma: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1000.0
    """Weight of the distance (Burgess: 1000)."""
    capacity: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 25.0
    """C at the end of the schedule, nats (Burgess on dSprites: 25)."""
    capacity_steps: Annotated[int, Field(ge=1)] = 100_000
    """Steps over which C rises (Burgess: 100,000)."""

    @property
    def demands(self) -> Demands:
        inference = "image-only" if self.given == ("image",) else "joint"
        return Demands(frozenset([self.given]), generates=self.modalities, inference=inference)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return 1 / gamma for capacity 0; else None: the divergence weighs gamma above C and minus gamma below."""
        return relative_weight(1.0, self.gamma) if self.capacity == 0 else None

    def check_run(self, training: RunSettings) -> str:
        check_single_device("capacity", training)
        if training.steps >= self.capacity_steps or self.capacity == 0:
            return ""
        reached = self.capacity * warmup_weight(training.steps, self.capacity_steps)
        return (
            f"C rises over objective.capacity_steps = {self.capacity_steps:,} steps, and the run has "
            f"{training.steps:,}: it ends at {reached:.3g} of {self.capacity:g} nats."
        )

    def __call__(self, model: Model, batch: Batch, step: int | None = None) -> Bound:
        trace = model.trace(batch, self.given, None, self.modalities)
        likely, capacity = trace.expected_log_likelihood, self.capacity * warmup_weight(step, self.capacity_steps)
        value = sum(likely.values(), -self.gamma * (trace.total_divergence.mean() - capacity).abs())
        terms = {f"log p({name}|z)": term for name, term in likely.items()} | trace.layer_divergences
        return Bound(value, terms, is_bound=self.capacity == 0 and self.gamma >= 1)
