"""What metrics of disentanglement share: encodings beside the factors behind their examples, repeats, scores."""

from abc import abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import UsageError
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.factors import Code
from mmgen.evaluation.settings import ENCODINGS
from mmgen.metrics._base import Metric, Score
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["Disentanglement", "Found"]

_REPEATS = 5


@dataclass(frozen=True)
class Found:
    """What one repeat of a metric finds.

    Attributes:
        values: Values by quantity.
        details: Further numbers of each repeat, of equal shapes, averaged over repeats.
    """

    values: Mapping[str, float]
    details: Mapping[str, NDArray[np.float64]]


class Disentanglement(Metric):
    """Base of metrics that ask which dimension of z follows which factor behind the examples.

    They look at means of q(z | image). Each is repeated five times, with a seed of its own and half of the encodings,
    another choice each time; the value is the mean over repeats. Halves of one sample differ as much as two samples of
    its whole size do, so that its standard error is their standard deviation, not that over the root of their number.
    """

    better = "higher"
    takes_guidance = False
    per_posterior = False
    scores_points = True
    reads = ("factors", *ENCODINGS)
    unit = "of 1"
    conditions: ClassVar = ("factors",)
    name: ClassVar[str]
    tests: ClassVar[int] = 0
    """Answers behind a share of right ones, in a repeat; 0 where the score is none."""
    protocol: ClassVar[str]
    """How it is measured, with its sizes."""

    @abstractmethod
    def measure(self, code: Code, rng: np.random.Generator) -> Found:
        """One repeat, on as many examples as were encoded.

        Args:
            code: Encodings and factors.
            rng: Randomness of the repeat.
        """

    def check(self, evaluation: "Evaluation") -> None:
        loaded = evaluation.loaded
        if loaded.observation is None or not loaded.model.answers((loaded.observation.name,)):
            raise UsageError(f"{self.name} is of a model with q(z | image); this one has none")
        evaluation.check_images((loaded.observation.name,))
        evaluation.factors  # noqa: B018  # says what is missing

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        code = evaluation.code
        repeats, half = [], (len(code) + 1) // 2
        for number in range(_REPEATS):
            rng = numpy_generator(evaluation.settings.seed, f"{self.name} {number}")
            repeats.append(self.measure(code[rng.permutation(len(code))[:half]], rng))
            yield (number + 1) / _REPEATS
        means = {key: np.mean([one.details[key] for one in repeats], axis=0).tolist() for key in repeats[0].details}
        assert evaluation.loaded.observation is not None
        scores = []
        for quantity in repeats[0].values:
            values = np.array([found.values[quantity] for found in repeats])
            error = _error(values, self.tests)
            scores.append(
                Score(
                    metric=self.name,
                    quantity=quantity,
                    value=float(values.mean()),
                    stderr=error,
                    unit=self.unit,
                    better=self.better,
                    n=half,
                    posterior=evaluation.loaded.observation.name,
                    protocol=self.protocol,
                    ids=evaluation.ids,
                    details={
                        "factors": list(code.names),
                        "repeats": values.tolist(),
                        "repeats_sd": float(values.std(ddof=1)),
                        "better_half": float(np.sort(values)[_REPEATS // 2 :].mean()),
                        "latent_size": code.means.shape[1],
                        **means,
                    },
                )
            )
        return scores


def _error(values: NDArray[np.float64], tests: int) -> float:
    """Standard error of the mean over repeats, of which each has another half of the same examples.

    A mean over N examples has the variance s^2 / N, and so has, given the N, that of a random half of them. The mean of
    R halves has s^2 / N from the choice of the N and s^2 / (R N) from the choice of halves. Only what answers of their
    own add, each repeat its ``tests``, is less the more repeats there are.

    Args:
        values: A value for each repeat [R]; shares in percent where there are answers.
        tests: Answers behind each; 0 where it is no share.
    """
    count, mean, variance = len(values), float(values.mean()), float(values.var(ddof=1))
    of_answers = mean * (100 - mean) / tests if tests else 0.0
    of_examples = max(0.0, variance - of_answers)
    error = float(np.sqrt(of_examples * (1 + 1 / count) + min(variance, of_answers) / count))
    return share_error(mean, error, count * tests) if tests else error
