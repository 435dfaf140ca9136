"""Disentanglement, completeness and informativeness, from the importance of each dimension in random forests.

References:
    A Framework for the Quantitative Evaluation of Disentangled Representations (Eastwood and Williams, 2018)
"""

import numpy as np

from mmgen.evaluation.factors import Code
from mmgen.metrics._disentanglement import Disentanglement, RepeatResult

__all__ = ["Dci"]


class Dci(Disentanglement):
    """Disentanglement, completeness and informativeness: how well importances match dimensions of z with factors.

    Disentanglement is 1 less the entropy of a dimension's importances, weighted by their sum: high where a dimension
    serves few factors. Completeness is the same of a factor: high where it needs few dimensions. Informativeness is
    the mean accuracy on examples that were not learnt from.
    ``details["importances"]`` [D, K] add up to 1 for each factor. Forests are those of Eastwood and Williams; scores of
    Locatello et al. are of boosted trees, and not to be compared with these.
    """

    protocol = "random forest of 100 trees"

    def measure(self, code: Code, rng: np.random.Generator) -> RepeatResult:
        from sklearn.ensemble import RandomForestClassifier

        learnt, tested = code.split_at_random(rng)
        importances, accuracies = [], []
        for factor in range(len(code.names)):
            # Each split looks at all dimensions: among a few drawn ones useless ones are used, and seem important.
            forest = RandomForestClassifier(100, max_features=None, min_samples_leaf=2, random_state=draw_seed(rng))
            forest.fit(learnt.means, learnt.factors[:, factor])
            importances.append(forest.feature_importances_)
            accuracies.append(forest.score(tested.means, tested.factors[:, factor]))
        table = np.stack(importances, axis=1)
        values = {
            "disentanglement": concentration(table),
            "completeness": concentration(table.T),
            "informativeness": float(np.mean(accuracies)),
        }
        return RepeatResult(values, {"importances": table, "accuracies": 100 * np.array(accuracies)})


def draw_seed(rng: np.random.Generator) -> int:
    """Draw a seed for scikit-learn from a NumPy generator."""
    return int(rng.integers(2**31))


def concentration(importances: np.ndarray) -> float:
    """Return how concentrated the rows of importances [R, C] are, from 0 to 1: 1 - normalised entropy, weighted by row
    sums.

    A single column gives 1, importances that are all 0 give 0.
    """
    total = importances.sum(1, keepdims=True)
    if not total.sum() > 0:
        return 0.0
    if importances.shape[1] == 1:
        return 1.0
    share = np.divide(importances, total, out=np.full_like(importances, 1 / importances.shape[1]), where=total > 0)
    terms = -share * np.log(share, out=np.zeros_like(share), where=share > 0)
    entropy = terms.sum(1) / np.log(importances.shape[1])
    return float(((1 - entropy) * total[:, 0]).sum() / total.sum())
