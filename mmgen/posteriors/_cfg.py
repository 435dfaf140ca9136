"""Classifier-free guidance of a fitted flow: its own velocity, moved away from the one without a description.

With velocities v(u) of no description, v_y of the words and v_k of a value that they exclude by NOT, draws follow

    v + (1 + s) (v_y - v) - s sum_k (v_k - v)

The end points have the density of this field, known by its trace up to the steps of draws and densities. It is not
q(z | y) p(y | z)^s, and no decoder p(y | z) is used.

References:
    Classifier-Free Diffusion Guidance (Ho, Salimans, 2022), arXiv:2207.12598
    Compositional Visual Generation with Composable Diffusion Models (Liu et al., 2022), arXiv:2206.01714 (NOT)
    Classifier-Free Guidance is a Predictor-Corrector (Bradley, Nakkiran, 2024), arXiv:2408.09000 (what it is not)
    Applying Guidance in a Limited Interval (Kynkaanniemi et al., 2024), arXiv:2404.07724
"""

import copy
from collections.abc import Sequence

import numpy as np

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.densities import SteeredDensity
from mmgen.descriptions import NOT, Expression, batch_of_queries
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
        self._excluded: tuple[np.ndarray, ...] = ()

    def find_guiding_modality(self, words: Batch) -> str | None:
        name = self.reads[0]
        return name if name in words.values and bool(words.present[name].any()) else None

    def condition_on(self, expression: Expression | None) -> Posterior:
        """Return the posterior of one description; NOT excludes values, OR is refused."""
        if expression is None:
            return self
        if expression.operators != {NOT}:
            raise UsageError(
                f"'{expression}' got guidance {self.guidance}, which understands NOT alone; use guidance by "
                "p(words | z), such as 3"
            )
        guided = copy.copy(self)
        guided._excluded = tuple(_excluded_values(expression))
        return guided

    @property
    def log_density_cost(self) -> float:
        return (2 + len(self._excluded)) * self._base.log_density_cost

    def _steer(self, words: Batch) -> FlowGuidance:
        return FlowGuidance(self._velocity_terms(words), None, self.guidance.start, self.guidance.end)

    def _velocity_terms(self, words: Batch) -> Sequence[tuple[float, Batch | None]]:
        """Return weights of the flow's velocities, each with its descriptions; None stands for no description."""
        scale, name, device = self.guidance.weight, self.reads[0], str(words.device)
        excluded = [(-scale, batch_of_queries(codes, name, device)) for codes in self._excluded]
        return [(1 + scale, words), *excluded, (scale * (len(excluded) - 1), None)]


def _excluded_values(expression: Expression) -> list[np.ndarray]:
    """Return a description uint8 [A] for each value that an expression excludes by NOT."""
    found = []
    (box,) = expression.boxes
    for attribute, allowed in enumerate(box):
        if expression.codes[attribute] != UNKNOWN:
            continue
        for value in np.flatnonzero(~allowed):
            codes = np.full_like(expression.codes, UNKNOWN)
            codes[attribute] = value
            found.append(codes)
    return found
