"""Conditions of a measurement that scores must share to be compared."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from mmgen.results.score import Score

__all__ = ["Conditions", "format_condition", "differing_names", "condition_title"]

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
