"""The base of guidance that steers the path of a flow's draws."""

from abc import abstractmethod

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.densities import SteeredDensity
from mmgen.posteriors._aggregate import FlowGuidance
from mmgen.posteriors._guidance import Guidance
from mmgen.posteriors._plain import Fitted
from mmgen.posteriors._posterior import GuidedPosterior, Posterior
from mmgen.results.naming import GuidanceReport, Weights

__all__ = ["FlowGuided"]


class FlowGuided(GuidedPosterior):
    """Base of posteriors whose draws follow a steered flow; their density is that of the steered velocity.

    Args:
        fitted: The flow.
        guidance: Weight, method, and the part of the path on which it acts.

    Raises:
        UsageError: The posterior is no fitted flow.
    """

    is_fitted = True

    def __init__(self, fitted: Posterior, guidance: Guidance) -> None:
        if not isinstance(fitted, Fitted) or not isinstance(fitted.aggregate.density, SteeredDensity):
            raise UsageError(
                f"guidance {guidance} got posterior '{fitted.name}', expected a fitted rectified flow; fit one with "
                "mmgen fit-aggregate --family rectified-flow, or use guidance by p(words | z), such as 3"
            )
        self._base, self._aggregate, self.guidance = fitted, fitted.aggregate, guidance
        self.name, self.size, self.reads = fitted.name, fitted.size, fitted.reads

    @property
    def weights(self) -> Weights:
        method = str(self.guidance).split(":", 2)
        return {
            **self._base.weights,
            "guidance": self.guidance.weight,
            "method": ":".join([method[0], *method[2:]]),
        }

    @property
    def report(self) -> GuidanceReport:
        weights = self.weights
        return GuidanceReport(
            self.base, weights["guidance"], text_weight=weights.get("text_weight"), method=weights["method"]
        )

    def draw(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        return self._aggregate.steered_sample(self._steer(words), n, words.size, generator)

    def log_density(self, z: Tensor, words: Batch) -> Tensor:
        return self.log_density_with_error(z, words)[0]

    @torch.no_grad()
    def log_density_with_error(self, z: Tensor, words: Batch) -> tuple[Tensor, Tensor | None]:
        z = z.expand(*z.shape[:-2], words.size, z.shape[-1])
        return self._aggregate.steered_log_prob(z, self._steer(words))

    @abstractmethod
    def _steer(self, words: Batch) -> FlowGuidance:
        """Return what steers draws of B descriptions."""
