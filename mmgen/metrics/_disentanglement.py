"""The base class of disentanglement metrics, which compare encodings with the known factors of the examples."""

from abc import abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.core.seeding import numpy_generator
from mmgen.evaluation import needs
from mmgen.evaluation.factors import Code
from mmgen.evaluation.settings import ENCODINGS
from mmgen.metrics._base import Metric, Score
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation


_REPEATS = 5


@dataclass(frozen=True)
class RepeatResult:
    """Values that a disentanglement metric has in one of its repeats.

    Attributes:
        values: Values by quantity.
        details: Further arrays, averaged over repeats.
    """

    values: Mapping[str, float]
    details: Mapping[str, NDArray[np.float64]]


def _missing_factors(evaluation: "Evaluation") -> str:
    """Return "" if the dataset has factors of variation; otherwise the dataset's reader raises the error."""
    evaluation.read_factors()
    return ""


class Disentanglement(Metric):
    """Base of metrics that measure which dimension of z follows which factor of variation.

    They evaluate means of q(z | image). Each is repeated five times, with another seed and another random half of the
    encodings; the value is the mean over repeats. Halves of one sample differ as much as two samples of its whole
    size, so that the standard error is the standard deviation over repeats, not divided by the root of their number.
    """

    better = "higher"
    posteriors = "none"
    points = "seen"
    reads = ("factors", *ENCODINGS)
    unit = "of 1"
    conditions: ClassVar = ("factors",)
    needs = (needs.explain_missing_image_encoder, _missing_factors)
    tests: ClassVar[int] = 0
    """Number of tests in a repeat, if the score is an accuracy; else 0."""
    protocol: ClassVar[str]
    """The method, with its sizes."""

    @abstractmethod
    def measure(self, code: Code, rng: np.random.Generator) -> RepeatResult:
        """Compute the metric on one random half of the encoded images."""

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        code = evaluation.encodings
        repeats, half = [], (len(code) + 1) // 2
        for number in range(_REPEATS):
            rng = numpy_generator(evaluation.settings.seed, f"{self.name} {number}")
            repeats.append(self.measure(code[rng.permutation(len(code))[:half]], rng))
            yield (number + 1) / _REPEATS
        averaged_details = {
            key: np.mean([results.details[key] for results in repeats], axis=0).tolist() for key in repeats[0].details
        }
        assert evaluation.loaded.observation is not None
        scores = []
        for quantity in repeats[0].values:
            values = np.array([results.values[quantity] for results in repeats])
            scores.append(
                self.score(
                    evaluation,
                    float(values.mean()),
                    _standard_error(values, self.tests),
                    half,
                    quantity=quantity,
                    posterior=evaluation.loaded.observation.name,
                    protocol=self.protocol,
                    details={
                        "factors": list(code.names),
                        "repeats": values.tolist(),
                        "repeats_sd": float(values.std(ddof=1)),
                        "better_half": float(np.sort(values)[_REPEATS // 2 :].mean()),
                        "latent_size": code.means.shape[1],
                        **averaged_details,
                    },
                )
            )
        return scores


def _standard_error(values: NDArray[np.float64], test_count: int) -> float:
    """Return the standard error of the mean of values [R] from R repeats on random halves of the images."""
    count, mean, variance = len(values), float(values.mean()), float(values.var(ddof=1))
    answer_variance = mean * (100 - mean) / test_count if test_count else 0.0
    example_variance = max(0.0, variance - answer_variance)
    error = float(np.sqrt(example_variance * (1 + 1 / count) + min(variance, answer_variance) / count))
    return share_error(mean, error, count * test_count) if test_count else error
