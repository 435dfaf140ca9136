"""Logistic regression on features of images, by scikit-learn."""

import warnings
from abc import abstractmethod
from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.baselines._base import LabelReader, LabelSupply
from mmgen.core.notation import UNKNOWN

__all__ = ["LinearBaseline", "Reader"]

INVERSE_PENALTIES = (0.01, 0.1, 1.0, 10.0)
"""C of scikit-learn; the one that is best on the validation part is used, of equals the smallest."""

_MOST_ITERATIONS = 200


class Reader:
    """Multinomial logistic regression from features [N, F] to codes [N], with one strength of its l2 penalty.

    Args:
        features: Features of the labelled images.
        codes: Their labels; a label that none of them has is never said.
        inverse_penalty: C.
    """

    def __init__(self, features: NDArray[np.float32], codes: NDArray[np.int64], inverse_penalty: float) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        self._constant = int(codes[0]) if (codes == codes[0]).all() else None
        if self._constant is not None:
            return
        self._model = LogisticRegression(C=inverse_penalty, max_iter=_MOST_ITERATIONS)
        with warnings.catch_warnings():
            # Weak penalties on separable pairs converge slowly; where they have not, stopping is a penalty of its own.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._model.fit(features, codes)

    def __call__(self, features: NDArray[np.float32]) -> NDArray[np.int64]:
        """Codes [N] of features [N, F]."""
        if self._constant is not None:
            return np.full(len(features), self._constant)
        return np.asarray(self._model.predict(features), np.int64)


class LinearBaseline(LabelReader):
    """Logistic regression from the features that a member makes of images."""

    @abstractmethod
    def features(self, part: str) -> NDArray[np.float32]:
        """Features [N, F] of all images of a part; computed once by whoever asks."""

    def learn(self) -> Generator[float, None, None]:
        yield from self.prepare()
        self._features = {part: self.features(part) for part in ("train", "val", "test")}
        yield 1.0

    def prepare(self) -> Generator[float, None, None]:
        """Learn the features themselves; yields the fraction done."""
        yield 0.0

    def read(self, labels: LabelSupply) -> Generator[float, None, tuple[NDArray[np.int64], dict[str, Any]]]:
        pairs, features, said = self.material.paired(labels), self._features, self.material.labels
        known = said("val") != UNKNOWN
        best, found, chosen = -1.0, None, 0.0
        for number, inverse_penalty in enumerate(INVERSE_PENALTIES):
            yield number / len(INVERSE_PENALTIES)
            reader = Reader(features["train"][pairs], said("train")[pairs], inverse_penalty)
            right = float((reader(features["val"])[known] == said("val")[known]).mean()) if known.any() else 0.0
            if right > best:
                best, found, chosen = right, reader, inverse_penalty
        assert found is not None
        return found(features["test"]), {"inverse_penalty": chosen, "features": features["test"].shape[1]}
