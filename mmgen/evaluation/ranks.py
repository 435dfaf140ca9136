"""Ranks of right candidates among all, with ties in every order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranks"]

_TIE = 1e-6
"""Scores that differ by less than this share of their size tie: the difference is rounding."""


@dataclass(frozen=True)
class Ranks:
    """Ranks of right candidates: for each of Q queries, how many of N candidates score better than the right ones.

    Attributes:
        better: Number of wrong candidates above the best right one, [Q].
        tied: Number of wrong candidates that tie with it, [Q].
        right: Number of right candidates that tie with it, including itself, [Q].
        relevant: Number of right candidates, [Q].
        candidates: N.
    """

    better: NDArray[np.int64]
    tied: NDArray[np.int64]
    right: NDArray[np.int64]
    relevant: NDArray[np.int64]
    candidates: int

    @classmethod
    def from_scores(cls, scores: NDArray[np.float64], is_right: NDArray[np.bool_]) -> "Ranks":
        """Rank the N candidates of Q queries by scores [Q, N], higher is better; ``is_right`` [Q, N] marks right ones.

        NaN counts as minus infinity.
        """
        scores = np.where(np.isnan(scores), -np.inf, scores)
        best = np.where(is_right, scores, -np.inf).max(1, keepdims=True)
        with np.errstate(invalid="ignore"):  # infinite ones less each other
            near = np.where(np.isfinite(best), _TIE * np.maximum(1.0, np.abs(best)), 0.0)
            equal = (scores == best) | (np.abs(scores - best) <= near)
        return cls(
            ((scores > best) & ~equal & ~is_right).sum(1),
            (equal & ~is_right).sum(1),
            (equal & is_right).sum(1),
            is_right.sum(1),
            scores.shape[1],
        )

    @property
    def chance(self) -> "Ranks":
        """Ranks of the same queries if candidates were ordered at random."""
        return Ranks(0 * self.better, self.candidates - self.relevant, self.relevant, self.relevant, self.candidates)

    def recall_at(self, k: int) -> NDArray[np.float64]:
        """Return the probability [Q] that a right candidate is among the first k, with ties in random order.

        If t wrong and r right candidates tie, the first m = k - better places hold no right one with probability
        C(t, m) / C(t + r, m).
        """
        places = np.clip(k - self.better, 0, self.tied + self.right)
        none = np.ones(len(self.better))
        for taken in range(int(places.max(initial=0))):  # the ratio of binomials as a product
            left = self.tied + self.right - taken
            step = np.clip(self.tied - taken, 0, None) / np.maximum(left, 1)
            none = np.where(taken < places, none * step, none)
        return np.asarray(1 - none)

    @property
    def ranks(self) -> NDArray[np.float64]:
        """Mean rank [Q] of the first right candidate with ties in random order: 1 + better + tied / (right + 1)."""
        return np.asarray(1 + self.better + self.tied / (self.right + 1))
