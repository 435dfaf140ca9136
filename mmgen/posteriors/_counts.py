"""Effective sample sizes of candidates, and warnings about them."""

from dataclasses import replace

import numpy as np

from mmgen.posteriors._candidates import Resampled
from mmgen.posteriors._guidance import Guidance

__all__ = ["CandidateStatistics"]

_ALIKE = 0.9
"""Effective sample size, as a share of the candidates, above which guidance has nearly no effect."""


class CandidateStatistics:
    """Statistics of the candidates of guided draws over descriptions, and warnings about them.

    Args:
        guidance: The guidance.
        effective: Effective sample size to reach.
        candidates: Largest number of candidates.
        pooled: Whether all descriptions share one pool of candidates.
    """

    def __init__(self, guidance: Guidance, effective: float, candidates: int, pooled: bool) -> None:
        self._guidance, self._pooled = guidance, pooled
        self._least, self._limit = effective, candidates
        self._effective: list[float] = []
        self._few: list[float] = []
        self._alike = 0
        self._most = 0

    def add(self, resampled: Resampled, draws: int) -> None:
        """Record the candidates of ``draws`` draws for one description."""
        self._effective.append(resampled.effective)
        self._most = max(self._most, resampled.candidates)
        self._alike += resampled.effective > _ALIKE * resampled.candidates
        least = self._least
        # If the effective size of a pool is less than the number of draws, these repeat each other.
        if resampled.effective < (max(least, draws) if self._pooled else least):
            self._few.append(resampled.effective)

    @property
    def diagnostics(self) -> dict[str, float | int]:
        """Smallest and median effective sample size, number of candidates, and the settings; {} before any draw."""
        if not self._effective:
            return {}
        return {
            "smallest_effective_sample_size": min(self._effective),
            "median_effective_sample_size": float(np.median(self._effective)),
            "candidates": self._most,
            "wanted_effective_sample_size": self._least,
            "most_candidates": self._limit,
        }

    @property
    def _more_candidates_option(self) -> str:
        """Option that asks for the same guidance with four times as many candidates."""
        return f"--guidance {replace(self._guidance, candidates=min(4 * self._limit, 2**20))}"

    @property
    def notices(self) -> list[str]:
        """Warnings about too few effective candidates, and about candidates that are nearly alike."""
        warnings, all_descriptions = [], f"of {len(self._effective):,} descriptions"
        if self._few:
            some_descriptions = f"for {len(self._few):,} {all_descriptions}"
            smallest = f"(smallest: {min(self._few):,.1f})"
            warnings.append(
                f"guidance {self._guidance} draws from one pool of {self._most:,}: {some_descriptions} its effective "
                f"sample size is below the number of draws {smallest}, so that draws repeat each other and vary less "
                "than they should; ask for fewer, use a smaller weight, or guide a posterior that is fitted to "
                "descriptions"
                if self._pooled
                else f"guidance {self._guidance} found few latents that match the words: {some_descriptions} the "
                f"effective sample size among {self._most:,} candidates was small {smallest}, so that draws resemble "
                "each other; use a smaller weight, another posterior to guide, or more candidates, "
                f"{self._more_candidates_option}"
            )
        # A weight below 1 is meant to change little.
        if self._guidance.weight >= 1 and 2 * self._alike > len(self._effective):
            warnings.append(
                f"guidance {self._guidance} changes next to nothing for {self._alike:,} {all_descriptions}: "
                "p(words | z) of this model is nearly the same for all candidates, whatever their pictures show"
            )
        return warnings
