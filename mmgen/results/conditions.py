"""The conditions of scores that make them comparable, and the run behind them."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

from mmgen.results.score import Score

_TITLES = {"samples": "importance samples", "real": "real pictures", "described": "descriptions by"}
"""Names of conditions for people, if they differ from those in files."""
_SHORT = 12  # letters of a content id


class Conditions(NamedTuple):
    """Conditions under which a score was measured: metric, unit, protocol, files and others; one table has equal ones.

    Attributes:
        metric: Name of the metric.
        unit: Its unit.
        protocol: Its protocol.
        dataset: Content id of the dataset; "" if not recorded.
        judge: Content id of the attribute classifier; "" without one.
        further: Names and values of :attr:`mmgen.results.score.Score.conditions`.
    """

    metric: str
    unit: str
    protocol: str
    dataset: str
    judge: str
    further: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_score(cls, score: Score) -> "Conditions":
        """Return the conditions under which a score was measured."""
        dataset, judge = (str(score.ids.get(role) or "") for role in ("dataset", "judge"))
        further = tuple(sorted(score.conditions.items()))
        return cls(score.metric, score.unit, score.protocol, dataset, judge, further)

    @property
    def by_name(self) -> dict[str, str]:
        """Text of each condition by the name of the condition."""
        return {**{name: getattr(self, name) for name in self._fields if name != "further"}, **dict(self.further)}

    def format_value(self, name: str, file_names: Mapping[str, str] = MappingProxyType({})) -> str:
        """Format the condition ``name`` for people: a file by name or start of its id; "not recorded" if empty.

        An empty judge is "none".
        """
        value = self.by_name.get(name, "")
        if name == "judge" and not value:
            return "none"
        return (file_names.get(value, value[:_SHORT]) if name in ("dataset", "judge") else value) or "not recorded"


def condition_title(name: str) -> str:
    """Return a condition's name as tables and sentences print it."""
    return _TITLES.get(name, name)


def differing_names(conditions: Sequence[Conditions]) -> list[str]:
    """Return the names of the conditions in which these scores differ."""
    every = [one.by_name for one in conditions]
    names = dict.fromkeys(name for named in every for name in named)
    return [name for name in names if len({named.get(name, "") for named in every}) > 1]


def format_condition(value: Any) -> str:
    """Format a setting or number as the text that a score stores as a condition."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


_NOT_OF_THE_RUN = ("seed", "device", "devices", "log_to")
"""Settings of training that may differ between seeds of the same run."""


def run_record(
    name: str,
    seeds: Sequence[int],
    settings: Sequence[Mapping[str, Any]],
    data: Iterable[str],
    *,
    members: Iterable[Mapping[str, str]] = (),
    initial_runs: Iterable[str] = (),
) -> dict[str, str]:
    """Describe a training run for the field ``run`` of its scores: name, digest of its settings, seed.

    Args:
        name: Name of the run's file, without ending.
        seeds: Seeds of the model, and of the fit to it.
        settings: Settings of the model, and of the fit to it.
        data: Content ids of the training datasets.
        members: Members from outside mmgen, as in headers.
        initial_runs: Digests of runs whose weights it began with, or content ids if only these are known.

    Example:
        >>> one, other = (run_record("a", [seed], [{"training": {"seed": seed, "steps": 9}}], []) for seed in (0, 1))
        >>> one["settings"] == other["settings"], one["seed"], other["seed"]
        (True, '0', '1')
    """
    plain = [{**part, "training": _without_seed(part.get("training"))} for part in settings]
    parts: list[Any] = [plain, sorted(data)]
    further = [sorted(json.dumps(dict(one), sort_keys=True) for one in members), sorted(initial_runs)]
    parts += further if any(further) else []
    text = json.dumps(parts, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return {"name": name, "settings": digest, "seed": "/".join(map(str, dict.fromkeys(seeds)))}


def _without_seed(training: Any) -> Any:
    if not isinstance(training, Mapping):
        return training
    return {key: value for key, value in training.items() if key not in _NOT_OF_THE_RUN}


def common_name(names: Sequence[str]) -> str:
    """Return the common part of the names of training runs that differ only in their seed.

    Example:
        >>> common_name(["telbo", "telbo-seed1"]), common_name(["telbo-0", "telbo-1"]), common_name(["telbo-2"])
        ('telbo', 'telbo', 'telbo-2')
    """
    if len(set(names)) == 1:
        return names[0]
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    common = re.sub(r"[-_. ]*(?:seed|run)?[-_. ]*$", "", "".join(letters[0] for letters in alike))
    return common or names[0]
