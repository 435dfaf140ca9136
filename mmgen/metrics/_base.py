"""What every metric is: how a score is computed, its unit and which way is better."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, ClassVar

from mmgen.core.progress import relay
from mmgen.results.score import Better, Score

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["Better", "Metric", "Score", "relay"]


class Metric(ABC):
    """Base of all metrics. Members have no state; what they measure comes in an :class:`Evaluation`."""

    unit: ClassVar[str]
    better: ClassVar[Better]
    further_units: ClassVar[Mapping[str, Better]] = {}
    """Units of scores that are in another one, and which way is better: {"ranks": "lower"}."""
    judged: ClassVar[bool] = False
    """Whether it needs a judge."""
    scores_points: ClassVar[bool] = False
    """Whether it scores single data points, which should not be training examples."""
    takes_guidance: ClassVar[bool] = True
    values_of_points: ClassVar[bool] = False
    """Whether ``points`` of its scores are ``evaluation.points``, in their order, so that errors are those
    of pictures or sources where several points are of one."""
    """Whether it asks posteriors of descriptions, which can be guided."""
    per_posterior: ClassVar[bool] = True
    """Whether it is asked once per posterior, or once per model."""
    rank: ClassVar[int] = 1
    """Order of evaluation: what asks for more samples comes first, so that the others share all of them."""
    columns: ClassVar[Mapping[str, str]] = {}
    """Further columns of its table, heading: name of the number in :attr:`Score.details`, printed with the error that
    stands there as "NAME_stderr". Quantity, posterior, value with its error, number of samples and the classifier's
    accuracy are there anyway; scores without a number leave its place empty."""

    reads: ClassVar[tuple[str, ...] | None] = None
    """Settings of an evaluation that it reads, beside seed and precision, by name: ("number", "split", "part"); also
    "posteriors" or "text_proposal", if it looks at these. What no metric reads that is asked is refused. None: it does
    not say, and nothing is refused."""
    unmeasured: ClassVar[str] = "nothing to measure with these numbers of given attributes"
    """What is said where there is no score of it."""
    conditions: ClassVar[tuple[str, ...]] = ()
    """Names of the ``details`` that change the question, so that only scores with equal ones are compared: ("pool",).
    Split, part, importance samples, real pictures, dataset and judge are always compared."""
    protocols: ClassVar[Mapping[str, str]] = {}
    """What protocols of its scores mean, each in a sentence for a page: {"bound": "The mean of log weights."}."""

    def check(self, evaluation: "Evaluation") -> None:  # noqa: B027  # most metrics accept every model
        """Raise a UsageError where the metric cannot be asked of this model; called before any work."""

    @abstractmethod
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        """Measure: yields the fraction done, from 0 to 1, and returns the scores."""
