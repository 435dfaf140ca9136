"""Options of an evaluation: default metrics, numbers of attributes left out, and a check for options without effect."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from mmgen.core.errors import MmgenError, UsageError
from mmgen.evaluation.languages import languages

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel
    from mmgen.metrics._base import Metric

__all__ = ["check_distinct", "check_options_are_read", "dropped_counts", "default_metrics"]

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
    if len(languages(loaded)) > 1:
        return ["sentences", "translation"]
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
