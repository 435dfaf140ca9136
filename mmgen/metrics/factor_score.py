"""The FactorVAE score: whether the dimension that varies least names the factor that was held fixed.

References:
    Disentangling by Factorising (Kim and Mnih, 2018), arXiv:1802.05983, Section 4
"""

import numpy as np

from mmgen.evaluation.factors import Code
from mmgen.metrics._disentanglement import Disentanglement, RepeatResult

__all__ = ["FactorScore"]

_ALIKE = 64
_TRAIN, _TEST = 10_000, 5_000


class FactorScore(Disentanglement):
    """Accuracy of a majority vote for the factor that 64 examples share, given the dimension of z that varies least.

    Dimensions whose mean has a standard deviation below 0.05 are left out, as in the authors' code.
    ``details["votes"]`` [D, K] counts, in percent of all votes, which dimension stood for which factor.
    """

    unit = "%"
    tests = _TEST
    protocol = f"{_ALIKE} examples alike, {_TRAIN:,} votes to learn from, {_TEST:,} to test"

    def measure(self, code: Code, rng: np.random.Generator) -> RepeatResult:
        active, variances = code.active, code.means.var(axis=0)
        sizes = (code.means.shape[1], len(code.names))
        chance = {"chance": np.array(100 / len(code.names))}
        if not len(active):
            return RepeatResult({"accuracy": 100 / len(code.names)}, {"votes": np.zeros(sizes), **chance})
        votes = []
        for part, size in zip(code.split_at_random(rng), (_TRAIN, _TEST), strict=True):
            held = rng.integers(len(code.names), size=size)
            counts = np.zeros(sizes)
            for factor in range(len(code.names)):
                first = rng.integers(len(part), size=int((held == factor).sum()))
                alike = part.draw_same_value(np.repeat(first[:, None], _ALIKE, 1), factor, rng)
                spread = part.means[alike][:, :, active].var(axis=1) / variances[active]
                np.add.at(counts[:, factor], active[spread.argmin(1)], 1)
            votes.append(counts)
        learnt, tested = votes
        right = tested[np.arange(sizes[0]), learnt.argmax(1)].sum() / tested.sum()
        return RepeatResult({"accuracy": 100 * float(right)}, {"votes": 100 * learnt / learnt.sum(), **chance})
