"""The base class of metrics."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from mmgen.core.errors import UsageError
from mmgen.core.progress import map_fractions
from mmgen.evaluation import needs
from mmgen.evaluation.needs import Need
from mmgen.results.naming import RETRIEVAL
from mmgen.results.score import Better, ExampleValues, Score
from mmgen.settings.plugins import to_kebab_case

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Better", "Metric", "Need", "ExampleValues", "Score", "map_fractions"]


class Metric(ABC):
    """Base of all metrics. A metric has no state: model, data and settings come from an :class:`Evaluation`."""

    name: ClassVar[str]
    """Name in scores, by default that of the class: ``ActiveUnits`` is ``active-units``."""
    unit: ClassVar[str]
    better: ClassVar[Better]
    further_units: ClassVar[Mapping[str, Better]] = {}
    """Units of scores in another unit, and which way is better: {"ranks": "lower"}."""
    needs: ClassVar[tuple[Need, ...]] = ()
    """Checks of model, data and settings, called in order before any work: functions of :mod:`mmgen.evaluation.needs`
    or of the metric's module. With ``needs.explain_missing_classifier`` it classifies drawn pictures."""
    posteriors: ClassVar[Literal["each", "together", "none"]] = "each"
    """Whether the metric is called for each posterior, once for all, or once because it uses no posterior of a
    description."""
    points: ClassVar[Literal["", "seen", "averaged"]] = ""
    """"seen": the metric evaluates data points, which should not be training examples. "averaged": its scores also
    hold one value for each of ``evaluation.data_points``, in order, so that standard errors can be over pictures or
    sources where several points belong to one."""
    rank: ClassVar[int] = 1
    """Order of evaluation, lowest first: the metric that draws most pictures comes first, and the others reuse them."""
    columns: ClassVar[Mapping[str, str]] = {}
    """Further columns of the printed table, {heading: key of :attr:`Score.details`}, printed with the error under
    "KEY_stderr" if there is one. Quantity, posterior, value with its error, number of samples and the classifier's
    accuracy are always printed."""
    reads: ClassVar[tuple[str, ...] | None] = None
    """Settings of an evaluation that the metric reads, besides seed and precision: ("number", "split", "part"); also
    "posteriors", "text_proposal", or "judge" if it uses a classifier where there is one. Settings that no metric reads
    are refused; with None all are accepted."""
    unmeasured: ClassVar[str] = "nothing to measure with these numbers of given attributes"
    """The message where there is no score."""
    conditions: ClassVar[tuple[str, ...]] = ()
    """Keys of ``details`` that must be equal for two scores to be compared, such as ("pool",). Split, part, importance
    samples, real pictures, dataset and classifier must always be equal."""
    protocols: ClassVar[Mapping[str, str]] = {}
    """Meaning of each protocol in a sentence for a page: {"bound": "The mean of log weights."}."""
    judged: ClassVar[bool] = False
    """Whether ``needs`` has ``needs.explain_missing_classifier``."""
    examines_pictures: ClassVar[bool] = False
    """Whether it examines drawn pictures alone, so that training pictures can be retrieved in place of them: it is
    judged, or reads "judge"."""

    compares_judges: ClassVar[bool] = False
    """Whether it compares what several judges read, so that it is computed once for all of them."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.judged = needs.explain_missing_classifier in cls.needs
        cls.examines_pictures = cls.judged or "judge" in (cls.reads or ())
        if "name" not in cls.__dict__:
            cls.name = to_kebab_case(cls.__name__)

    def check(self, evaluation: "Evaluation") -> None:
        """Refuse an evaluation whose model, data or settings lack one of the metric's ``needs``.

        Raises:
            UsageError: Something is missing.
        """
        usual: tuple[Need, ...] = (needs.explain_ignored_guidance,)
        if self.posteriors != "none":
            usual = (needs.explain_missing_retrieval if self.examines_pictures else needs.explain_useless_retrieval,)
        for need in (*usual, *self.needs):
            if missing := need(evaluation):
                raise UsageError(f"{self.name} {missing}")

    @abstractmethod
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        """Compute the metric: yield the fraction of work done, from 0 to 1, and return the scores."""

    def score(
        self,
        evaluation: "Evaluation",
        value: float,
        stderr: float | None,
        n: int,
        *,
        quantity: str = "",
        posterior: str = "",
        protocol: str = "",
        given: int | None = None,
        unit: str = "",
        points: ExampleValues | None = None,
        by_attribute: Mapping[str, float] | None = None,
        warnings: tuple[str, ...] = (),
        details: Mapping[str, Any] | None = None,
        ids: Mapping[str, str] | None = None,
    ) -> Score:
        """Build a :class:`Score` of this metric from a measured value, adding the unit, content ids and classifier
        accuracy.

        Args:
            evaluation: The evaluation.
            value: In ``unit``.
            stderr: Standard error of the value; None where there is none.
            n: Samples behind the value: pictures or data points.
            quantity: What was measured; by default the name of the metric.
            posterior: Name of the posterior that z was drawn from.
            protocol: Name of the method.
            given: Number of attributes that the descriptions specify.
            unit: One of ``further_units``; by default ``self.unit``.
            points: Values of single examples, if the value is their mean.
            by_attribute: The same measure for each attribute alone.
            warnings: Sentences for whoever reads the score.
            details: Further numbers.
            ids: Content ids of further files, by role.
        """
        judge = evaluation.judge if self.judged else None
        return Score(
            metric=self.name,
            quantity=quantity or self.name,
            value=float(value),
            stderr=stderr,
            unit=unit or self.unit,
            better=self.further_units[unit] if unit else self.better,
            n=n,
            posterior=posterior,
            given=given,
            protocol=protocol,
            judge_accuracy=(judge.accuracy or None) if judge else None,
            ids={**evaluation.content_ids, **({"judge": judge.content_id} if judge else {}), **(ids or {})},
            # Retrieval returns training pictures, which nothing sharpens.
            sharpened=self.examines_pictures and evaluation.loaded.sharpener is not None and posterior != RETRIEVAL,
            points=points,
            by_attribute=dict(by_attribute or {}),
            warnings=warnings,
            details=dict(details or {}),
        )
