"""The base of metrics, their choice by name, and the options that they read."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from mmgen.core.errors import MmgenError, UsageError
from mmgen.core.progress import Progress, Work
from mmgen.evaluation import Evaluation, needs
from mmgen.evaluation.needs import Need
from mmgen.results.naming import RETRIEVAL
from mmgen.results.score import Better, ExampleValues, Score
from mmgen.results.standard_errors import add_clustered_error
from mmgen.settings.plugins import to_kebab_case
from mmgen.settings.registry import registry_of

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation import TrainedModel


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

    judges_views: ClassVar[bool] = False
    """Whether it reads drawn pictures of all modalities, each by the judge that was trained on it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.judged = needs.explain_missing_classifier in cls.needs
        cls.examines_pictures = cls.judged or "judge" in (cls.reads or ())
        if "name" not in cls.__dict__:
            cls.name = to_kebab_case(cls.__name__)

    @classmethod
    def claims(cls, loaded: "TrainedModel") -> bool:
        """Return whether this metric is computed for a model by default, in place of those for pictures and words."""
        return False

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


_IGNORED = ("seed", "precision")
"""Settings that are accepted even where a metric does not use them: one that draws nothing needs no seed."""
_OPTION_NAMES = {
    "factors": "--factor",
    "dropped": "--given-count",
    "posteriors": "--posterior",
    "complete": "--no-complete",
}


def default_metrics(loaded: "TrainedModel") -> list[str]:
    """Return the names of the metrics that are computed by default: they depend on the kinds of words in the model's
    data.
    """
    if claimed := [name for name, member in registry_of(__package__).import_all().items() if member.claims(loaded)]:
        return claimed
    if loaded.attributes is None and loaded.text is not None:
        return ["retrieval"]
    captioned = loaded.text is not None and loaded.description_kind != "attributes"
    return ["correctness"] if captioned else ["correctness", "coverage", *(["recall"] if loaded.observation else [])]


def dropped_counts(given_count: Sequence[int] | None, loaded: "TrainedModel") -> list[int] | None:
    """Convert numbers of attributes that descriptions keep (``--given-count``) to numbers that they leave out.

    Raises:
        UsageError: A number is repeated, or the model has fewer attributes.
    """
    if given_count is None:
        return None
    count = len(loaded.attributes.names) if loaded.attributes is not None else 0
    check_distinct("--given-count", given_count)
    if any(not 0 <= number <= count for number in given_count):
        got = ",".join(map(str, given_count))
        raise UsageError(
            f"--given-count got {got}, expected numbers from 0 to {count}, the number of attributes of the model"
        )
    return [count - number for number in given_count]


def check_distinct(option: str, values: Sequence[object]) -> None:
    """Refuse an option that lists a value twice.

    Args:
        option: Name of the option for the message.
        values: Its values.

    Raises:
        UsageError: A value is repeated.
    """
    repeated = next((value for place, value in enumerate(values) if value in values[:place]), None)
    if repeated is not None:
        raise UsageError(f"{option} got {repeated} twice, expected each value once; leave the second one out")


def check_options_are_read(metrics: Sequence[str], options: Iterable[str]) -> None:
    """Refuse options of the user that none of the metrics reads.

    Args:
        metrics: Names of the metrics to compute.
        options: Options that the user set: names as in :attr:`~mmgen.metrics._base.Metric.reads`.

    Raises:
        UsageError: An option is not read; the message names the metrics that read it.
    """
    from mmgen.metrics import get, names

    read = [_options_read_by(get(name)) for name in dict.fromkeys(metrics)]
    if None in read:
        return
    known = {setting for settings in read for setting in settings or ()}
    unread = [name for name in options if name not in known and name not in _IGNORED]
    if not unread:
        return
    readers: dict[str, list[str]] = {name: [] for name in unread}
    for metric in names():
        with suppress(MmgenError):  # a metric from outside that cannot be used
            for name in set(unread) & (_options_read_by(get(metric)) or set()):
                readers[name].append(metric)
    unread_options = [
        f"{_command_line_option(name)} ({', '.join(metric_names) or 'no metric'})"
        for name, metric_names in readers.items()
    ]
    raise UsageError(
        f"--metric {' and '.join(dict.fromkeys(metrics))} got options that it does not read: "
        f"{', '.join(unread_options)}; leave them out, or add a metric that reads them, named in brackets"
    )


def _options_read_by(metric: "type[Metric]") -> set[str] | None:
    """Return the names of the options that a metric reads; None if it reads all options."""
    if metric.reads is None:
        return None
    implied = {
        "posteriors": metric.posteriors == "each",
        "complete": metric.posteriors != "none",
        "judge": metric.judged,
    }
    return {*metric.reads, *(name for name, read in implied.items() if read)}


def _command_line_option(name: str) -> str:
    """Return the command-line form of an option: "--given-count" of "given_count"."""
    return _OPTION_NAMES.get(name, f"--{name.replace('_', '-')}")


_UNITS = 1000
"""Units of progress per metric and posterior."""


def training_images_warning(evaluation: Evaluation, metrics: Sequence[str]) -> str:
    """Return a warning if some of ``metrics`` evaluate images that the model was trained on; "" otherwise."""
    from mmgen.metrics import get

    trained_on, part = evaluation.loaded.settings.data.split, evaluation.settings.part
    names = [name for name in dict.fromkeys(metrics) if get(name).points]
    if not names or part == "train" or not (share := evaluation.provenance.trained_share):
        return ""
    return (
        f"{100 * share:.1f} % of the {part} part of split '{evaluation.split}' are images that this model was trained "
        f"on, by split '{trained_on}': {', '.join(names)} will look better than on new images; leave --split out for "
        "those"
    )


def evaluate(evaluation: Evaluation, metrics: Sequence[str]) -> Work[list[Score]]:
    """Return the work that computes metrics, for every posterior of an evaluation.

    Args:
        evaluation: The evaluation.
        metrics: Names of metrics.

    Raises:
        UsageError: A metric does not exist, or model, data or settings lack something that it needs. No work is done.
    """
    from mmgen.metrics import get

    members: list[Metric] = [get(name)() for name in dict.fromkeys(metrics)]
    for member in members:
        member.check(evaluation)
    pairs = [
        (member, posterior)
        for member in sorted(members, key=lambda member: member.rank)
        for posterior in (evaluation.posteriors if member.posteriors == "each" else evaluation.posteriors[:1])
    ]

    def measure_all() -> Generator[Progress, None, list[Score]]:
        scores: dict[Metric, list[Score]] = {member: [] for member in members}
        for number, (member, posterior) in enumerate(pairs):
            work = member(evaluation, posterior)
            while True:
                try:
                    fraction = next(work)
                except StopIteration as stop:
                    scores[member] += [_add_provenance(evaluation, member, score) for score in stop.value]
                    break
                yield Progress(int((number + min(1.0, fraction)) * _UNITS))
            yield Progress((number + 1) * _UNITS)
        return [score for member in members for score in scores[member]]

    return Work("measuring", len(pairs) * _UNITS, "", measure_all)


def _add_provenance(evaluation: Evaluation, member: Metric, score: Score) -> Score:
    """Add to a score its run, its conditions and, if several points belong to one picture, the clustered error."""
    score = evaluation.provenance.complete(score)
    if member.points == "averaged":
        score = add_clustered_error(score, evaluation.dataset.read_sources(evaluation.rows_of_points))
    return evaluation.provenance.add_conditions(score, member.judged, bool(member.points), member.conditions)


def evaluate_with_classifiers(
    evaluation: Evaluation, metrics: Sequence[str], classifiers: "Sequence[Classifier | None]"
) -> list[Work[list[Score]]]:
    """Return one work for all metrics, and one for each further classifier with the metrics that can use one.

    All classifiers see the same drawn pictures. Metrics that compare judges are in the first work alone.

    Raises:
        UsageError: As :func:`evaluate`.
    """
    from mmgen.metrics import get

    judged = [name for name in metrics if get(name).examines_pictures and not get(name).compares_judges]
    further = [evaluation.replace_classifier(judge) for judge in classifiers]
    return [evaluate(evaluation, metrics), *(evaluate(other, judged) for other in further if judged)]
