r"""Target: the aggregated posterior, by minus KL(q(z|x) || q(z|y)) averaged over images x with the words y.

References:
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Eq. 5
"""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from mmgen.core.batch import Batch
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.objectives import CONFIG, Bound
from mmgen.posteriors._aggregate import Aggregate
from mmgen.posteriors._base import DensityTask, FitParts, Target
from mmgen.training.task import ALONE, Task

__all__ = ["AggregatedTarget"]


class AggregatedTask(DensityTask):
    """Training task that fits a density to cached encodings, by maximum likelihood or by a loss of its family."""

    def __init__(self, aggregate: Aggregate, keep_all: float) -> None:
        super().__init__(aggregate, keep_all)
        self.quantity = "minus KL" if aggregate.by_likelihood else "minus loss"

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return a one-sample estimate of minus KL(q(z|x) || q(z|y)) [B] in nats, up to a constant (CK Section 3).

        For a family with a loss of its own it is minus that loss.
        """
        batch = self.hide_attributes(batch)
        encoding = DiagonalGaussian(batch.values["mean"], batch.values["log_sd"])
        value = self.aggregate.training_value(encoding.sample(), batch)
        if not self.aggregate.by_likelihood:
            return Bound(value, {})
        log_q, entropy = value, encoding.entropy()
        return Bound(log_q + entropy, {"log q(z|y)": log_q, "entropy of q(z|x)": entropy})


@dataclass(frozen=True, config=CONFIG)
class AggregatedTarget(Target):
    """Target: the aggregated posterior of images with the words (CK Eq. 5)."""

    posterior: ClassVar[str] = "aggregate"

    @property
    def learns_unlabelled(self) -> bool:
        return True

    def build_task(self, parts: FitParts) -> Task:
        parts.aggregate.standardise(parts.mean, parts.log_sd)
        return AggregatedTask(parts.aggregate, parts.keep_all)
