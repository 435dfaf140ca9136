"""Guidance that steers the path of a fitted flow's draws, and the choice of how posteriors are guided.

Classifier-free guidance moves the flow's own velocity away from the one without a description. With velocities v(u) of
no description and v_y of the words, draws follow

    v + (1 + s) (v_y - v)

It is not q(z | y) p(y | z)^s, and no decoder p(y | z) is used.

Guidance by the gradient uses the model's own p(words | z). At each time t of the path the flow's velocity tells where
it leads: a Gaussian of draws z. The gradient of the log mean of p(y | z)^w over it pulls the path
(:mod:`mmgen.densities.rectified_flow`). Draws roughly follow q(z | y) p(y | z)^w, as those of guidance by candidates do
(:mod:`mmgen.posteriors._guided`).

The end points of both have the density of the steered field, known by its trace up to the steps of draws and densities.

References:
    Classifier-Free Diffusion Guidance (Ho, Salimans, 2022), arXiv:2207.12598
    Classifier-Free Guidance is a Predictor-Corrector (Bradley, Nakkiran, 2024), arXiv:2408.09000 (what it is not)
    Applying Guidance in a Limited Interval (Kynkaanniemi et al., 2024), arXiv:2404.07724
    Diffusion Models Beat GANs on Image Synthesis (Dhariwal, Nichol, 2021), arXiv:2105.05233
    Loss-Guided Diffusion Models for Plug-and-Play Controllable Generation (Song et al., 2023)
    Training-free Linear Image Inverses via Flows (Pokle et al., 2024), arXiv:2310.04432
"""

from abc import abstractmethod

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.densities import SteeredDensity
from mmgen.posteriors._aggregate import FlowGuidance
from mmgen.posteriors._guidance import CFG, GRADIENT, Guidance, WordLikelihood
from mmgen.posteriors._guided import Estimates, Guided
from mmgen.posteriors._plain import Fitted
from mmgen.posteriors._posterior import GuidedPosterior, Posterior, Posteriors
from mmgen.results.naming import Weights

_COST = 4.0
"""Costs of a log density, in those of the flow alone: second derivatives of the network, and those of the decoder."""


def guide_posteriors(
    posteriors: Posteriors, likelihood: WordLikelihood, guidance: Guidance, seed: int, estimates: Estimates
) -> Posteriors:
    """Guide posteriors: every one, or the fitted one alone by "cfg" and "gradient"; a weight of 0 guides none.

    Args:
        posteriors: The posteriors.
        likelihood: p(words | z) of the model.
        guidance: Weight and method.
        seed: Seed of candidates that are shared by all descriptions.
        estimates: Cache of the model.

    Raises:
        UsageError: The model has no p(words | z), or for "cfg" and "gradient" no fitted rectified flow.
    """
    if not guidance:
        return posteriors.apply_guidance(None)
    path = likelihood.path
    if guidance.method != CFG and not likelihood.names:
        generated = ", ".join(likelihood.model.generates) or "nothing"
        raise UsageError(
            f"guidance needs a decoder of attributes or text, but {path} generates only {generated}; "
            "draw without guidance"
        )

    def guide(base: Posterior) -> GuidedPosterior:
        if guidance.method == CFG:
            return ClassifierFree(base, guidance)
        if guidance.method == GRADIENT:
            return GradientGuided(base, likelihood, guidance)
        return Guided(base, likelihood, guidance, seed, estimates)

    guided = posteriors.apply_guidance(guide, fitted_only=guidance.steers)
    if guidance.steers:
        if not guided:
            raise UsageError(
                f"guidance {guidance} needs a fitted rectified flow, but {path} is a model alone; fit one with "
                f"mmgen fit-aggregate {path} --family rectified-flow"
            )
        guided[guided.default]  # refuses other densities
    return guided


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


class ClassifierFree(FlowGuided):
    """Posterior under classifier-free guidance, which combines the velocities of a fitted rectified flow.

    Args:
        fitted: The flow.
        guidance: Weight s, and the part of the path on which it acts.

    Raises:
        UsageError: The posterior is no flow, reads no description, was fitted with guidance or saw no hidden words.
    """

    def __init__(self, fitted: Posterior, guidance: Guidance) -> None:
        super().__init__(fitted, guidance)
        if fitted.is_unconditional:
            raise UsageError(
                f"guidance {guidance} got q(z), expected a posterior that reads descriptions; fit one with --given "
                "attributes or text, or use guidance by p(words | z), such as 3"
            )
        assert isinstance(self._aggregate.density, SteeredDensity)
        if not self._aggregate.density.knows_no_context:
            raise UsageError(
                f"guidance {guidance} got a flow fitted with aggregate.family.unconditional=0, expected one that has "
                "seen hidden descriptions; fit it with 0.1"
            )
        if fitted.weights.get("guidance"):
            raise UsageError(
                f"guidance {guidance} got posterior '{fitted.name}', which was fitted with guidance by p(words | z); "
                "use a plain q_agg"
            )

    def find_guiding_modality(self, words: Batch) -> str | None:
        name = self.reads[0]
        return name if name in words.values and bool(words.present[name].any()) else None

    @property
    def log_density_cost(self) -> float:
        return 2 * self._base.log_density_cost

    def _steer(self, words: Batch) -> FlowGuidance:
        scale = self.guidance.weight
        return FlowGuidance([(1 + scale, words), (-scale, None)], None, self.guidance.start, self.guidance.end)


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
