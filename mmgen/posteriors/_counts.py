"""Effective sample sizes of candidates, and warnings about them."""

from dataclasses import replace

import numpy as np

from mmgen.posteriors._candidates import Resampled
from mmgen.posteriors._guidance import Guidance

__all__ = ["Counts"]

_ALIKE = 0.9
"""Effective sample size, as a share of the candidates, above which guidance chooses nearly at random."""


class Counts:
    """Effective sample sizes of the candidates, description by description.

    Args:
        guidance: The guidance.
        pooled: Whether one pool answers all descriptions.
    """

    def __init__(self, guidance: Guidance, pooled: bool) -> None:
        self._guidance, self._pooled = guidance, pooled
        self._effective: list[float] = []
        self._few: list[float] = []
        self._alike = 0
        self._most = 0

    def add(self, chosen: Resampled, n: int) -> None:
        """Add the candidates of n draws for one description."""
        self._effective.append(chosen.effective)
        self._most = max(self._most, chosen.candidates)
        self._alike += chosen.effective > _ALIKE * chosen.candidates
        enough = self._guidance.effective
        # Of a pool with fewer in effect, draws repeat each other and look less varied than q_w is.
        if chosen.effective < (max(enough, n) if self._pooled else enough):
            self._few.append(chosen.effective)

    @property
    def diagnostics(self) -> dict[str, float | int]:
        """Smallest and median effective sample size, most candidates, and the settings; empty without draws."""
        if not self._effective:
            return {}
        return {
            "smallest_effective_sample_size": min(self._effective),
            "median_effective_sample_size": float(np.median(self._effective)),
            "candidates": self._most,
            "wanted_effective_sample_size": self._guidance.effective,
            "most_candidates": self._guidance.candidates,
        }

    @property
    def _more(self) -> str:
        """Return the option for the same guidance with four times as many candidates."""
        return f"--guidance {replace(self._guidance, candidates=min(4 * self._guidance.candidates, 2**20))}"

    @property
    def notices(self) -> list[str]:
        """Warnings: few effective candidates, or candidates that are nearly alike."""
        warnings, every = [], f"of {len(self._effective):,} descriptions"
        if self._few:
            some, least = f"for {len(self._few):,} {every}", f"(the least {min(self._few):,.1f})"
            warnings.append(
                f"guidance {self._guidance} draws from one pool of {self._most:,}: {some} its effective sample "
                f"size is below the number of draws {least}, so that these repeat each other and vary less than they "
                "should; ask for fewer, use a smaller weight, or guide a posterior that is fitted to descriptions"
                if self._pooled
                else f"guidance {self._guidance} found little that says the words: {some} the effective sample size "
                f"among {self._most:,} candidates was small {least}, so that draws resemble each other; use a smaller "
                f"weight, another posterior to guide, or more candidates, {self._more}"
            )
        # A weight below 1 is meant to change little.
        if self._guidance.weight >= 1 and 2 * self._alike > len(self._effective):
            warnings.append(
                f"guidance {self._guidance} changes next to nothing for {self._alike:,} {every}: p(words | z) of this "
                "model is nearly the same for all that is chosen from, whatever their pictures show"
            )
        return warnings
