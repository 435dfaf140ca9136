r"""Whole descriptions given a part of one: words that are left open are drawn from training descriptions.

By the law of total probability the posterior of a part is a mixture of those of whole descriptions,

.. math:: q(z | y_O) = \sum_{y \supseteq y_O} p(y | y_O) \, q(z | y),

so a density needs to know whole descriptions alone, each of which is one cluster of z rather than many. p(y | y_O) are
the shares of the training descriptions that agree with the part. NOT and OR are parts like others.

Where no training description agrees with a part, p(y | y_O) is that of a kernel estimate: each training description
stands for itself with words changed, any wrong word r times as likely as the right one, so that one with m words unlike
the part's lends its other words with weight r^m. r has the greatest likelihood of descriptions that are left out; at 1,
where words are independent, all lend alike.

References:
    Multivariate Binary Discrimination by the Kernel Method (Aitchison, Aitken, 1976), Biometrika 63. Their kernel has
    one probability of a change for all words; one r instead does not favour words of many values.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.descriptions import Expression, attributes_to_caption, batch_of_captions, batch_of_queries
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.text import TextDescription

_ODDS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Candidates for r, the odds of a wrong word against the right one."""
_LEFT_OUT, _OTHERS = 128, 2048
"""Descriptions that are left out in turn to choose r, and descriptions that the kernels are put on."""


def distinct_descriptions(codes: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the distinct descriptions [N, A] of examples [M, A] that know at least one word, and their counts [N]."""
    rows, counts = np.unique(codes[(codes != UNKNOWN).any(1)], axis=0, return_counts=True)
    return rows, counts.astype(np.int64)


class Completions:
    """Distribution p(y | given) of whole descriptions y given a part of one, from counts of training descriptions.

    Descriptions of examples whose words are partly unknown stay partial.

    Args:
        rows: Distinct training descriptions uint8 [N, A], ``UNKNOWN`` for unknown words.
        counts: How many examples have each, int64 [N].
        attributes: Names and values of the attributes.
        text: Captions that spell the attributes, which then are part of whole descriptions; None without.

    Example:
        >>> info = AttributesDescription(names=("shape", "hue"), values=(("star", "moon"), ("red", "blue")))
        >>> known = Completions(np.array([[0, 0], [0, 1], [1, 1]], np.uint8), np.array([1, 3, 4]), info)
        >>> whole, shares = known.complete(np.array([0, 255], np.uint8))
        >>> whole.tolist(), shares.tolist()
        ([[0, 0], [0, 1]], [0.25, 0.75])
    """

    def __init__(
        self,
        rows: NDArray[np.uint8],
        counts: NDArray[np.int64],
        attributes: AttributesDescription,
        text: TextDescription | None = None,
    ) -> None:
        self.attributes, self._caption = attributes, "" if text is None else text.name
        self.text = text if text is not None and text.slots else None
        if self.text is not None:
            spelled = (rows[:, [attributes.names.index(slot) for slot in self.text.slots]] != UNKNOWN).all(1)
            rows, counts = rows[spelled], counts[spelled]
        self.rows, self.counts = rows, counts

    @classmethod
    def from_examples(
        cls, codes: NDArray[np.uint8], attributes: AttributesDescription, text: TextDescription | None = None
    ) -> Self:
        """Count the descriptions uint8 [M, A] of examples."""
        return cls(*distinct_descriptions(codes), attributes, text)

    def is_open(self, codes: NDArray[np.uint8], expression: Expression | None = None) -> bool:
        """Return True if a description [A] leaves words open that training descriptions can complete."""
        return expression is not None or (bool(len(self.rows)) and bool((codes == UNKNOWN).any()))

    def probabilities(self, codes: NDArray[np.uint8], expression: Expression | None = None) -> NDArray[np.float64]:
        """Return the share of each training description among those that agree with a part, float64 [N].

        Args:
            codes: The given words uint8 [A], ``UNKNOWN`` where open.
            expression: NOT and OR, in place of ``codes``.

        Raises:
            UsageError: No training description satisfies the expression.
        """
        if expression is not None:
            agree = expression.matches(self.rows)
            if not agree.any():
                raise UsageError(
                    f"'{expression}' got no training description that satisfies it, expected at least one, since NOT "
                    "and OR are drawn from those; allow more, or give attribute=value alone"
                )
        else:
            given = codes != UNKNOWN
            agree = (self.rows[:, given] == codes[given]).all(1)
            if not agree.any() and len(agree):
                logs = np.log(self.counts) + self._log_kernel(self.rows[:, given], codes[given], given, self.odds)
                return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))
        weights = np.where(agree, self.counts, 0).astype(np.float64)
        return np.asarray(weights / max(weights.sum(), 1.0))

    @cached_property
    def odds(self) -> float:
        """Odds r of a wrong word against the right one, by the likelihood of descriptions that are left out."""
        order = numpy_generator(0, "kernel of descriptions").permutation(len(self.rows))[:_OTHERS]
        rows, logs = self.rows[order], np.log(self.counts[order])
        totals = np.zeros(len(_ODDS))
        for left in range(min(_LEFT_OUT, len(rows) - 1)):
            known = rows[left] != UNKNOWN
            for number, odds in enumerate(_ODDS):
                each = logs + self._log_kernel(rows[:, known], rows[left, known], known, odds)
                totals[number] += np.logaddexp.reduce(np.delete(each, left))
        return _ODDS[int(totals.argmax())]

    def _log_kernel(
        self, rows: NDArray[np.uint8], words: NDArray[np.uint8], known: NDArray[np.bool_], odds: float
    ) -> NDArray[np.float64]:
        """Return the log likelihood [N] of the words [K] of the ``known`` attributes under the kernel of each row."""
        sizes = np.array(self.attributes.sizes)[known]
        each = np.where(rows == words, 0.0, np.log(odds)) - np.log1p((sizes - 1) * odds)
        return np.asarray(np.where(rows == UNKNOWN, -np.log(sizes), each).sum(1))

    def complete(
        self, codes: NDArray[np.uint8], expression: Expression | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Return all U whole descriptions uint8 [U, A] of a part, and their probabilities float64 [U], which sum to 1.

        Arguments and errors are those of :meth:`probabilities`. A description without open words is its own.
        """
        if not self.is_open(codes, expression):
            return codes[None], np.ones(1)
        shares = self.probabilities(codes, expression)
        chosen = np.flatnonzero(shares)
        whole = self.rows[chosen]
        if expression is None:
            whole = np.where(codes != UNKNOWN, codes, whole)
            whole, of = np.unique(whole, axis=0, return_inverse=True)
            return whole, np.bincount(of.reshape(-1), shares[chosen]).astype(np.float64)
        return whole, shares[chosen]

    def sample(
        self,
        codes: NDArray[np.uint8],
        n: int,
        generator: torch.Generator | None = None,
        expression: Expression | None = None,
    ) -> NDArray[np.uint8]:
        """Draw n whole descriptions uint8 [n, A] of a part; further arguments are those of :meth:`probabilities`."""
        whole, shares = self.complete(codes, expression)
        if len(whole) == 1:
            return whole.repeat(n, 0)
        device = "cpu" if generator is None else generator.device
        weights = torch.from_numpy(shares).to(device)
        # Two at least: torch draws a single one in another way, and one draw is the first of several.
        drawn = torch.multinomial(weights, max(n, 2), replacement=True, generator=generator)[:n]
        return np.asarray(whole[drawn.cpu().numpy()])

    def log_prob(
        self, whole: NDArray[np.uint8], codes: NDArray[np.uint8], expression: Expression | None = None
    ) -> NDArray[np.float64]:
        """Return log p(whole | part) [M] in nats of whole descriptions uint8 [M, A]; minus infinity where it is 0."""
        support, shares = self.complete(codes, expression)
        known = {row.tobytes(): share for row, share in zip(support, shares, strict=True)}
        with np.errstate(divide="ignore"):
            return np.log([known.get(row.tobytes(), 0.0) for row in whole])

    def batch(self, whole: NDArray[np.uint8], device: str = "cpu") -> Batch:
        """Convert whole descriptions uint8 [M, A] to a batch, with their captions where these spell attributes."""
        batch = batch_of_queries(whole, self.attributes.name, device)
        if self.text is None:
            return batch
        tokens = attributes_to_caption(whole, self.text, self.attributes)
        return batch | batch_of_captions(tokens, self.text.name, device)

    def open_codes(self, words: Batch, reads: Sequence[str]) -> NDArray[np.uint8] | None:
        """Return the codes uint8 [B, A] of descriptions that leave words open; None if there is nothing to complete.

        Args:
            words: The B descriptions.
            reads: Modalities that the posterior reads.
        """
        name, text = self.attributes.name, self.text
        if name not in words.values or not {name, *([text.name] if text else [])} & {*reads}:
            return None
        present = words.present[name]
        spelled = self._caption in words.values and bool(words.present[self._caption].any())
        if spelled or bool(present.all()):
            return None  # a caption is whole
        known = torch.where(present, words.values[name], UNKNOWN)
        return np.asarray(known.cpu().numpy().astype(np.uint8))
