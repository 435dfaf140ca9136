"""Separated attribute predictability: how much better one dimension alone predicts a factor than the next one.

References:
    Variational Inference of Disentangled Latent Concepts from Unlabeled Observations (Kumar et al., 2018),
    arXiv:1711.00848, Section 3
    Challenging Common Assumptions in the Unsupervised Learning of Disentangled Representations (Locatello et al., 2019)
"""

import warnings

import numpy as np

from mmgen.evaluation.factors import Code
from mmgen.metrics._disentanglement import Disentanglement, RepeatResult

__all__ = ["Sap"]

_C = 0.01


class Sap(Disentanglement):
    """Mean over factors of the accuracy gap between the two dimensions of z that alone predict the factor best, by a
    linear SVM.

    A dimension whose mean does not vary, and one whose machine is worse, has the accuracy of a guess: always the value
    that is commonest where it is learnt from. Published code gives the first of these 0, with which noise in a single
    active dimension would have a gap of chance. ``details["accuracies"]`` [D, K] are in percent, on examples that were
    not learnt from.
    """

    protocol = f"linear SVM, C = {_C}, classes weighed equally"

    def measure(self, code: Code, rng: np.random.Generator) -> RepeatResult:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        learnt, tested = code.split_at_random(rng)
        # A dimension names a factor at least as well as a guess, which asks none: always the commonest value.
        commonest = [np.bincount(column).argmax() for column in learnt.factors.T]
        guesses = (tested.factors == commonest).mean(0)
        accuracies = np.tile(guesses, (code.means.shape[1], 1))
        for dimension in code.active:
            one, other = (part.means[:, [dimension]] for part in (learnt, tested))
            for factor in np.flatnonzero(np.ptp(learnt.factors, axis=0)):  # where there is something to tell apart
                machine = LinearSVC(C=_C, class_weight="balanced", random_state=int(rng.integers(2**31)))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # so do published scores
                    machine.fit(one, learnt.factors[:, factor])
                score = machine.score(other, tested.factors[:, factor])
                accuracies[dimension, factor] = max(score, accuracies[dimension, factor])
        top = np.sort(np.vstack([accuracies, guesses]), axis=0)  # the next one of a single dimension is a guess
        gaps = top[-1] - top[-2]
        return RepeatResult({"gap": float(gaps.mean())}, {"accuracies": 100 * accuracies, "gaps": gaps})
