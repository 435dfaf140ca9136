"""Logistic regression on raw pixels."""

import numpy as np
from numpy.typing import NDArray

from mmgen.contrib.baselines._base import LinearBaseline

__all__ = ["Logistic"]


class Logistic(LinearBaseline):
    """Logistic regression from pixels, which uses the labelled images alone (WG Section 5.1, baseline 2)."""

    def features(self, part: str) -> NDArray[np.float32]:
        return self.data.pixels(part)
