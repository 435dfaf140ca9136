"""What an evaluation is asked: the usual metrics, attributes left out, and that every option is read by a metric."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from mmgen.core.errors import MmgenError, UsageError

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel
    from mmgen.metrics._base import Metric

__all__ = ["check_distinct", "check_options_are_read", "dropped_counts", "usual_metrics"]

_OF_ALL = ("seed", "precision")
"""Settings that say how something is computed, and not what: a metric that draws nothing has no use for a seed."""
_TYPED = {"factors": "--factor", "dropped": "--given-count", "posteriors": "--posterior"}


def usual_metrics(loaded: "TrainedModel") -> list[str]:
    """Return the default metrics of a model: those of a classifier, or, without one, those of the model alone."""
    if loaded.attributes is None and loaded.text is not None:
        return ["retrieval"]
    captioned = loaded.text is not None and loaded.description_kind != "attributes"
    return ["correctness"] if captioned else ["correctness", "coverage", *(["recall"] if loaded.observation else [])]


def dropped_counts(given_count: Sequence[int] | None, loaded: "TrainedModel") -> list[int] | None:
    """Convert numbers of given attributes (``--given-count``) to numbers of attributes left out.

    Raises:
        UsageError: A number stands twice, or the model has fewer attributes.
    """
    if given_count is None:
        return None
    count = len(loaded.attributes.names) if loaded.attributes is not None else 0
    check_distinct("--given-count", given_count)
    if any(not 0 <= number <= count for number in given_count):
        got = ",".join(map(str, given_count))
        raise UsageError(f"--given-count got {got}, expected numbers from 0 to {count}, the model's attributes")
    return [count - number for number in given_count]


def check_distinct(option: str, values: Sequence[object]) -> None:
    """Refuse an option with the same value twice.

    Args:
        option: How it was said, for the message.
        values: What was said.

    Raises:
        UsageError: Something is there twice.
    """
    twice = next((one for place, one in enumerate(values) if one in values[:place]), None)
    if twice is not None:
        raise UsageError(f"{option} got {twice} twice, expected each once; leave one out")


def check_options_are_read(metrics: Sequence[str], options: Iterable[str]) -> None:
    """Refuse options that none of the metrics reads.

    Args:
        metrics: Names of what is measured.
        options: What a person set: names as in :attr:`~mmgen.metrics._base.Metric.reads`.

    Raises:
        UsageError: It names the metrics that read it.
    """
    from mmgen.metrics import get, names

    read = [_options_of(get(name)) for name in dict.fromkeys(metrics)]
    if None in read:
        return
    known = {setting for settings in read for setting in settings or ()}
    unread = [name for name in options if name not in known and name not in _OF_ALL]
    if not unread:
        return
    readers: dict[str, list[str]] = {name: [] for name in unread}
    for metric in names():
        with suppress(MmgenError):  # a metric from outside that cannot be used
            for name in set(unread) & (_options_of(get(metric)) or set()):
                readers[name].append(metric)
    unread_options = [
        f"{_flag_of(name)} ({', '.join(metrics_of) or 'no metric'})" for name, metrics_of in readers.items()
    ]
    raise UsageError(
        f"--metric {' and '.join(dict.fromkeys(metrics))} got options that it does not read: "
        f"{', '.join(unread_options)}; leave them out, or ask for one of the metrics in brackets, which do"
    )


def _options_of(metric: "type[Metric]") -> set[str] | None:
    """Return the options that a metric reads; None if it reads all."""
    if metric.reads is None:
        return None
    implied = {"posteriors": metric.posteriors == "each", "judge": metric.judged}
    return {*metric.reads, *(name for name, read in implied.items() if read)}


def _flag_of(name: str) -> str:
    return _TYPED.get(name, f"--{name.replace('_', '-')}")
