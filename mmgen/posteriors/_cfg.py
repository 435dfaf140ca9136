"""Classifier-free guidance of a fitted flow: its own velocity, moved away from the one without a description.

With velocities v(u) of no description and v_y of the words, draws follow

    v + (1 + s) (v_y - v)

The end points have the density of this field, known by its trace up to the steps of draws and densities. It is not
q(z | y) p(y | z)^s, and no decoder p(y | z) is used.

References:
    Classifier-Free Diffusion Guidance (Ho, Salimans, 2022), arXiv:2207.12598
    Classifier-Free Guidance is a Predictor-Corrector (Bradley, Nakkiran, 2024), arXiv:2408.09000 (what it is not)
    Applying Guidance in a Limited Interval (Kynkaanniemi et al., 2024), arXiv:2404.07724
"""

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.densities import SteeredDensity
from mmgen.posteriors._aggregate import FlowGuidance
from mmgen.posteriors._flow_guided import FlowGuided
from mmgen.posteriors._guidance import Guidance
from mmgen.posteriors._posterior import Posterior

__all__ = ["ClassifierFree"]


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
