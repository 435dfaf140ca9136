"""Guided posteriors of one model by what guides them, kept with their draws."""

from collections.abc import Callable

from mmgen.core.errors import UsageError
from mmgen.posteriors._cfg import ClassifierFree
from mmgen.posteriors._gradient import GradientGuided
from mmgen.posteriors._guidance import CFG, GRADIENT, Guidance
from mmgen.posteriors._guided import Guided, Pools
from mmgen.posteriors._likelihood import WordLikelihood
from mmgen.posteriors._posterior import GuidedPosterior, Posterior, Posteriors

__all__ = ["GuidedCache"]

_GUIDED = 8
"""Largest number of cached guided posteriors."""


class GuidedCache:
    """Cache of a model's posteriors under each guidance, together with their draws.

    Args:
        likelihood: p(words | z) of the model.
    """

    def __init__(self, likelihood: WordLikelihood) -> None:
        self._likelihood = likelihood
        self._known: dict[tuple[str, Guidance, int], GuidedPosterior] = {}
        self._pools: Pools = {}

    def apply(self, posteriors: Posteriors, guidance: Guidance, seed: int) -> Posteriors:
        """Guide posteriors: every one, or the fitted one alone by "cfg" and "gradient"; a weight of 0 guides none.

        Raises:
            UsageError: The model has no p(words | z), or for "cfg" and "gradient" no fitted rectified flow.
        """
        if not guidance:
            return posteriors.apply_guidance(None)
        path = self._likelihood.path
        if guidance.method != CFG and not self._likelihood.names:
            generated = ", ".join(self._likelihood.model.generates) or "nothing"
            raise UsageError(
                f"guidance needs a decoder of attributes or text, but {path} generates only {generated}; "
                "draw without guidance"
            )
        guided = posteriors.apply_guidance(self._guide(guidance, seed), fitted_only=guidance.steers)
        if guidance.steers:
            if not guided:
                raise UsageError(
                    f"guidance {guidance} needs a fitted rectified flow, but {path} is a model alone; fit one with "
                    f"mmgen fit-aggregate {path} --family rectified-flow"
                )
            guided[guided.default]  # refuses other densities
        return guided

    def _guide(self, guidance: Guidance, seed: int) -> Callable[[Posterior], GuidedPosterior]:
        """Return a function that puts a posterior under this guidance; see :class:`Guided`."""

        def guide_posterior(base: Posterior) -> GuidedPosterior:
            key = base.name, guidance, seed
            if key not in self._known:
                while len(self._known) >= _GUIDED:
                    del self._known[next(iter(self._known))]
                self._known[key] = self._make(base, guidance, seed)
            return self._known[key]

        return guide_posterior

    def _make(self, base: Posterior, guidance: Guidance, seed: int) -> GuidedPosterior:
        if guidance.method == CFG:
            return ClassifierFree(base, guidance)
        if guidance.method == GRADIENT:
            return GradientGuided(base, self._likelihood, guidance)
        return Guided(base, self._likelihood, guidance, seed, self._pools)
