"""What scores must share to be compared: the one rule of every table and of every paired difference."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from mmgen.results.score import Score

__all__ = ["Conditions", "condition_text", "differing", "title_of"]

_TITLES = {"samples": "importance samples", "real": "real pictures", "described": "descriptions by"}
"""Names of conditions for people, where files have others."""
_SHORT = 12  # letters of a content id


class Conditions(NamedTuple):
    """Conditions that scores must share to stand in one table: metric, unit, protocol, files, and the score's own.

    Attributes:
        metric: Name of the metric.
        unit: Its unit.
        protocol: Its protocol.
        dataset: Content id of the dataset; "" where it was not recorded.
        judge: Content id of the attribute classifier; "" without one.
        further: :attr:`mmgen.results.score.Score.conditions`, name and value.
    """

    metric: str
    unit: str
    protocol: str
    dataset: str
    judge: str
    further: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, score: Score) -> "Conditions":
        """Return the conditions of a score."""
        dataset, judge = (str(score.ids.get(role) or "") for role in ("dataset", "judge"))
        further = tuple(sorted(score.conditions.items()))
        return cls(score.metric, score.unit, score.protocol, dataset, judge, further)

    @property
    def named(self) -> dict[str, str]:
        """Return all conditions by name."""
        return {**{name: getattr(self, name) for name in self._fields if name != "further"}, **dict(self.further)}

    def value(self, name: str, files: Mapping[str, str] = MappingProxyType({})) -> str:
        """Return a value for people, "not recorded" for none; a file by its name, else by the start of its id."""
        value = self.named.get(name, "")
        return (files.get(value, value[:_SHORT]) if name in ("dataset", "judge") else value) or "not recorded"


def title_of(name: str) -> str:
    """Return the name of a condition for people."""
    return _TITLES.get(name, name)


def differing(conditions: Sequence[Conditions]) -> list[str]:
    """Return the names of conditions in which some differ."""
    every = [one.named for one in conditions]
    names = dict.fromkeys(name for named in every for name in named)
    return [name for name in names if len({named.get(name, "") for named in every}) > 1]


def condition_text(value: Any) -> str:
    """Return the text of a value among the conditions of a score."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
