"""Guidance of a fitted flow by the gradient of the model's own p(words | z).

At each time t of the path the flow's velocity tells where it leads: a Gaussian of draws z. The gradient of the log mean
of p(y | z)^w over it pulls the path (:mod:`mmgen.densities.rectified_flow`). Draws roughly follow q(z | y) p(y | z)^w,
as those of guidance by candidates do (:mod:`mmgen.posteriors._guided`). Their density, up to steps, is that of the
steered velocity, known by its trace.

References:
    Diffusion Models Beat GANs on Image Synthesis (Dhariwal, Nichol, 2021), arXiv:2105.05233
    Loss-Guided Diffusion Models for Plug-and-Play Controllable Generation (Song et al., 2023)
    Training-free Linear Image Inverses via Flows (Pokle et al., 2024), arXiv:2310.04432
"""

from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.posteriors._aggregate import FlowGuidance
from mmgen.posteriors._flow_guided import FlowGuided
from mmgen.posteriors._guidance import Guidance
from mmgen.posteriors._likelihood import WordLikelihood
from mmgen.posteriors._posterior import Posterior
from mmgen.results.naming import Weights

__all__ = ["GradientGuided"]

_COST = 4.0
"""Costs of a log density, in those of the flow alone: second derivatives of the network, and those of the decoder."""


class GradientGuided(FlowGuided):
    """Posterior of a fitted rectified flow whose draws the gradient of w log p(words | z) pulls on their way.

    Args:
        fitted: The flow, with descriptions or without.
        likelihood: p(words | z) of the model.
        guidance: Weight w, and the part of the path on which it acts.

    Raises:
        UsageError: The posterior is no flow, or is fitted to the top layer of z alone.
    """

    def __init__(self, fitted: Posterior, likelihood: WordLikelihood, guidance: Guidance) -> None:
        super().__init__(fitted, guidance)
        if self._aggregate.layers != "all":
            raise UsageError(
                f"guidance {guidance} got a flow of the top layer alone, expected one of all layers, which "
                "p(words | z) reads; fit one of them, or use guidance by candidates, such as 3"
            )
        self.likelihood = likelihood
        data = likelihood.data
        parts = [part.name for part in (data.attributes, data.text) if part is not None]
        self.reads = tuple(name for name in parts if name in (*fitted.reads, *likelihood.names))

    @property
    def weights(self) -> Weights:
        weights = super().weights
        # A posterior fitted with guidance and guided again has the sum of both weights.
        weights["guidance"] += self._base.weights.get("guidance", 0.0)
        return weights

    @property
    def log_density_cost(self) -> float:
        return _COST * self._base.log_density_cost

    def find_guiding_modality(self, words: Batch) -> str | None:
        specified = self.likelihood.specified_modalities(words)
        return self.likelihood.select_modality(words, self._base.reads) if specified else None

    def _steer(self, words: Batch) -> FlowGuidance:
        self.likelihood.check_readable(self.name, self._base.reads, words)

        def read(z: Tensor, rows: slice) -> Tensor:
            return self.guidance.weight * self.likelihood.log_prob(z, words[rows], preferred=self._base.reads)

        specified = self.likelihood.specified_modalities(words)
        return FlowGuidance([(1.0, words)], read if specified else None, self.guidance.start, self.guidance.end)
