"""The base of metrics of disentanglement: encodings beside factors, repeats, scores."""

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

__all__ = ["Disentanglement", "RepeatResult"]

_REPEATS = 5


@dataclass(frozen=True)
class RepeatResult:
    """Results of one repeat.

    Attributes:
        values: Values by quantity.
        details: Further arrays, averaged over repeats.
    """

    values: Mapping[str, float]
    details: Mapping[str, NDArray[np.float64]]


def _factors(evaluation: "Evaluation") -> str:
    """Need a dataset with factors."""
    evaluation.read_factors()
    return ""


class Disentanglement(Metric):
    """Base of metrics that measure which dimension of z follows which factor behind the examples.

    They look at means of q(z | image). Each is repeated five times, with its own seed and another random half of the
    encodings; the value is the mean over repeats. Halves of one sample differ as much as two samples of its whole
    size, so that the standard error is the standard deviation over repeats, not divided by the root of their number.
    """

    better = "higher"
    posteriors = "none"
    points = "seen"
    reads = ("factors", *ENCODINGS)
    unit = "of 1"
    conditions: ClassVar = ("factors",)
    needs = (needs.image_encoder, _factors)
    tests: ClassVar[int] = 0
    """Number of tests in a repeat, if the score is an accuracy; else 0."""
    protocol: ClassVar[str]
    """The method, with its sizes."""

    @abstractmethod
    def measure(self, code: Code, rng: np.random.Generator) -> RepeatResult:
        """Measure one repeat."""

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        code = evaluation.code
        repeats, half = [], (len(code) + 1) // 2
        for number in range(_REPEATS):
            rng = numpy_generator(evaluation.settings.seed, f"{self.name} {number}")
            repeats.append(self.measure(code[rng.permutation(len(code))[:half]], rng))
            yield (number + 1) / _REPEATS
        further = {
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
                    _error(values, self.tests),
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
                        **further,
                    },
                )
            )
        return scores


def _error(values: NDArray[np.float64], tests: int) -> float:
    """Return the standard error of the mean over repeats [R], each on another half of the same examples."""
    count, mean, variance = len(values), float(values.mean()), float(values.var(ddof=1))
    of_answers = mean * (100 - mean) / tests if tests else 0.0
    of_examples = max(0.0, variance - of_answers)
    error = float(np.sqrt(of_examples * (1 + 1 / count) + min(variance, of_answers) / count))
    return share_error(mean, error, count * tests) if tests else error
