"""Logistic regression on features of images, by scikit-learn."""

import warnings
from abc import abstractmethod
from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.baselines._base import LabelReader, LabelSupply
from mmgen.core.notation import UNKNOWN

__all__ = ["LinearBaseline", "fit_regression"]

INVERSE_PENALTIES = (0.01, 0.1, 1.0, 10.0)
"""C of scikit-learn; the one that is best on the validation part is used, the smallest of equals."""

_MOST_ITERATIONS = 200


def fit_regression(features: NDArray[np.float32], codes: NDArray[np.int64], inverse_penalty: float) -> Any:
    """Fit logistic regression from features [N, F] to codes [N]. If all codes are equal, it predicts that code."""
    from sklearn.dummy import DummyClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if (codes == codes[0]).all():
        return DummyClassifier().fit(features, codes)
    with warnings.catch_warnings():
        # Weak penalties on separable pairs converge slowly; stopping early is a penalty of its own.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=inverse_penalty, max_iter=_MOST_ITERATIONS).fit(features, codes)


class LinearBaseline(LabelReader):
    """Base of methods that predict labels by logistic regression from features of images."""

    @abstractmethod
    def features(self, part: str) -> NDArray[np.float32]:
        """Compute features [N, F] of all images of a part of the split."""

    def train_features(self) -> Generator[float, None, None]:
        """Learn the parameters of :meth:`features` from all training images; yield the fraction done."""
        yield 0.0

    def learn_features(self) -> Generator[float, None, None]:
        yield from self.train_features()
        self._features = {part: self.features(part) for part in ("train", "val", "test")}
        yield 1.0

    def predict_test_labels(
        self, labels: LabelSupply
    ) -> Generator[float, None, tuple[NDArray[np.int64], dict[str, Any]]]:
        pairs, features, codes = self.data.labelled_positions(labels), self._features, self.data.labels
        known = codes("val") != UNKNOWN
        best, found, chosen = -1.0, None, 0.0
        for number, inverse_penalty in enumerate(INVERSE_PENALTIES):
            yield number / len(INVERSE_PENALTIES)
            model = fit_regression(features["train"][pairs], codes("train")[pairs], inverse_penalty)
            right = float((model.predict(features["val"][known]) == codes("val")[known]).mean()) if known.any() else 0.0
            if right > best:
                best, found, chosen = right, model, inverse_penalty
        assert found is not None
        predicted = np.asarray(found.predict(features["test"]), np.int64)
        return predicted, {"inverse_penalty": chosen, "features": features["test"].shape[1]}
