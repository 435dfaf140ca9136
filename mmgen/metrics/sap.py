"""Separated attribute predictability: how much better one dimension alone names a factor than the next one.

References:
    Variational Inference of Disentangled Latent Concepts from Unlabeled Observations (Kumar et al., 2018),
    arXiv:1711.00848, Section 3
    Challenging Common Assumptions in the Unsupervised Learning of Disentangled Representations (Locatello et al., 2019)
"""

import warnings

import numpy as np

from mmgen.metrics._code import Code
from mmgen.metrics._disentanglement import Disentanglement, Found
from mmgen.metrics._settings import ENCODINGS

__all__ = ["Sap"]

_C = 0.01


class Sap(Disentanglement):
    """Mean over factors of the gap between the two dimensions whose linear support vector machine names them best.

    ``extra["accuracies"]`` [D, K] are in percent, on examples that were not learnt from.
    """

    name = "sap"
    protocol = f"linear SVM, C = {_C}, classes weighed equally"
    reads = ("factors", *ENCODINGS)

    def measure(self, code: Code, rng: np.random.Generator) -> Found:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        learnt, tested = code.divided(rng)
        accuracies = np.zeros((code.means.shape[1], len(code.names)))
        for dimension in code.active:
            one, other = (part.means[:, [dimension]] for part in (learnt, tested))
            for factor in range(len(code.names)):
                if len(np.unique(learnt.factors[:, factor])) < 2:  # nothing to tell apart: always the one value
                    accuracies[dimension, factor] = np.mean(tested.factors[:, factor] == learnt.factors[0, factor])
                    continue
                machine = LinearSVC(C=_C, class_weight="balanced", random_state=int(rng.integers(2**31)))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # so do published scores
                    machine.fit(one, learnt.factors[:, factor])
                accuracies[dimension, factor] = machine.score(other, tested.factors[:, factor])
        top = np.sort(accuracies, axis=0)
        gaps = top[-1] - (top[-2] if len(top) > 1 else 0)
        return Found({"gap": float(gaps.mean())}, {"accuracies": 100 * accuracies, "gaps": gaps})
