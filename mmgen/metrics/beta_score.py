"""The beta-VAE score: whether a linear classifier sees from differences of encodings which factor was held fixed.

References:
    beta-VAE: Learning Basic Visual Concepts with a Constrained Variational Framework (Higgins et al., 2017), Section 3
"""

import numpy as np

from mmgen.evaluation.factors import Code
from mmgen.metrics._disentanglement import Disentanglement, RepeatResult

__all__ = ["BetaScore"]

_PAIRS = 64
_TRAIN, _TEST = 10_000, 5_000


class BetaScore(Disentanglement):
    r"""Accuracy of a logistic regression that predicts the factor whose value 64 pairs of examples share, from
    differences of z.

    Its input is the mean of :math:`|\mu_1 - \mu_2|` over the pairs.

    Published figures are means of the better half of 30 scores (10 models, 3 classifiers each); this is the mean of all
    repeats, and ``details["better_half"]`` that of the better ones. The score saturates: entangled encodings reach
    95 %.
    """

    unit = "%"
    tests = _TEST
    protocol = f"{_PAIRS} pairs, {_TRAIN:,} points to learn from, {_TEST:,} to test"

    def measure(self, code: Code, rng: np.random.Generator) -> RepeatResult:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        points = []
        for part, size in zip(code.split_at_random(rng), (_TRAIN, _TEST), strict=True):
            held = rng.integers(len(code.names), size=size)
            differences = np.empty((size, code.means.shape[1]))
            for factor in range(len(code.names)):
                of_factor = np.flatnonzero(held == factor)
                ones = rng.integers(len(part), size=(len(of_factor), _PAIRS))
                others = part.draw_same_value(ones, factor, rng)
                differences[of_factor] = np.abs(part.means[ones] - part.means[others]).mean(1)
            points.append((differences, held))
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        (learnt, names), (tested, right) = points
        accuracy = classifier.fit(learnt, names).score(tested, right)
        return RepeatResult({"accuracy": 100 * float(accuracy)}, {"chance": np.array(100 / len(code.names))})
