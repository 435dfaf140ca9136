"""What scores must share to be compared: the one rule of every table and of every paired difference."""

from functools import lru_cache
from typing import Any, NamedTuple

from mmgen.core.errors import MmgenError
from mmgen.results.score import Score
from mmgen.settings.registry import registry_of

__all__ = ["CALLED", "Conditions"]

CALLED = {"samples": "importance samples", "real": "real pictures", "described": "descriptions by"}
"""What people call a condition that has another name in files."""


class Conditions(NamedTuple):
    """What scores must share to stand in one table, "" where it was not recorded.

    ``further`` is what their metric asks for besides (:attr:`mmgen.metrics._base.Metric.conditions`), name and value,
    and what is to be said of data that are not what they are called.
    """

    metric: str
    unit: str
    protocol: str
    split: str
    part: str
    dataset: str
    judge: str
    pixels: str
    samples: str
    real: str
    further: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, score: Score) -> "Conditions":
        """Those of a score."""
        said = {name: _text(score.extra.get(name)) for name in ("split", "part", "samples", "real")}
        pixels = "drawn" if score.extra.get("pixels") == "drawn" else ""  # of the others the dataset tells
        dataset, judge = (str(score.ids.get(role) or "") for role in ("dataset", "judge"))
        further = tuple((name, _text(score.extra.get(name))) for name in _asked(score.metric) if name not in said)
        if content := _text(score.extra.get("content")):
            further += (("content", content),)
        return cls(
            score.metric, score.unit, score.protocol, said["split"], said["part"], dataset, judge, pixels,
            said["samples"], said["real"], further,
        )  # fmt: skip

    @property
    def named(self) -> dict[str, str]:
        """All of them by name."""
        return {**{name: getattr(self, name) for name in self._fields if name != "further"}, **dict(self.further)}


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value or "")


@lru_cache
def _asked(metric: str) -> tuple[str, ...]:
    """What a metric asks for; nothing where it is not installed, for files of scores stand alone."""
    metrics = registry_of("mmgen.metrics")
    try:
        asked: tuple[str, ...] = metrics.get(metric).conditions if metric in metrics.names() else ()
    except MmgenError:
        return ()
    return asked
