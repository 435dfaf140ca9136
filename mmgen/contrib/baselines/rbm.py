"""A restricted Boltzmann machine of all images, then logistic regression on its hidden units.

References:
    Training Restricted Boltzmann Machines using Approximations to the Likelihood Gradient (Tieleman, 2008),
    https://doi.org/10.1145/1390156.1390290: persistent contrastive divergence, as in scikit-learn's BernoulliRBM
"""

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from mmgen.contrib.baselines._base import LinearBaseline
from mmgen.core.seeding import numpy_generator, stream_key

__all__ = ["Rbm"]

HIDDEN = 256
EPOCHS = 10
LEARNING_RATE = 0.05
BATCH = 100


class Rbm(LinearBaseline):
    """Logistic regression from the hidden units of a restricted Boltzmann machine (WG Section 5.1, baseline 5)."""

    def train_features(self) -> Generator[float, None, None]:
        from sklearn.neural_network import BernoulliRBM

        pixels = self.data.pixels("train")
        batch = min(BATCH, len(pixels))
        seed = stream_key(self.data.seed, "rbm") % 2**32
        self._rbm = BernoulliRBM(n_components=HIDDEN, learning_rate=LEARNING_RATE, batch_size=batch, random_state=seed)
        batches = len(pixels) // batch  # its persistent chains need whole batches
        for epoch in range(EPOCHS):
            order = numpy_generator(self.data.seed, "rbm order", epoch).permutation(len(pixels))
            for number in range(batches):
                self._rbm.partial_fit(pixels[order[number * batch : (number + 1) * batch]])
                if number % 50 == 0:
                    yield (epoch + number / batches) / EPOCHS

    def features(self, part: str) -> NDArray[np.float32]:
        return np.asarray(self._rbm.transform(self.data.pixels(part)), np.float32)
