"""Published numbers, all in published.toml, and their data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from mmgen.core.parsing import parse_toml
from mmgen.settings.registry import unknown_name

__all__ = [
    "Published",
    "PublishedJudge",
    "published_judges",
    "published_papers",
    "published_table",
    "published_tables",
]


@dataclass(frozen=True)
class _OfData:
    """Base of published numbers that were measured on a dataset.

    Attributes:
        source: The paper, and the place in it.
        recipe: Recipe of the dataset; "" where there is none.
        settings: Settings of that recipe which make it the same dataset: size, binarisation, source.
    """

    source: str
    recipe: str
    settings: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def differences(self, settings: Mapping[str, Any]) -> list[str]:
        """Return how a dataset of the same recipe differs from the paper's; [] where the numbers may be compared.

        Example:
            >>> table = published_tables()[0]
            >>> table.differences({"recipe": "mnist-a", "size": 32, "binarise": True, "source": "mnist"})
            ['size 32 instead of 64']
            >>> table.differences({"recipe": "mnist-a", "size": 64, "binarise": True, "source": "mnist",
            ...                    "content": "not MNIST as published"})
            ['data that are not MNIST as published']
        """

        def text(value: Any) -> str:
            return value if isinstance(value, str) else json.dumps(value)

        other = [f"data that are {settings['content']}"] if settings.get("content") else []
        return other + [
            f"{key} {text(settings[key])} instead of {text(value)}" if key in settings else f"{key} not recorded"
            for key, value in self.settings.items()
            if key not in settings or settings[key] != value
        ]


@dataclass(frozen=True)
class Published(_OfData):
    """One published table; see published.toml for the fields."""

    dataset: str
    columns: tuple[str, ...]
    row: tuple[dict[str, Any], ...]
    spread_means: str = ""
    from_memory: bool = False
    note: str = ""

    @property
    def called(self) -> str:
        """Return the source as printed beside its numbers, marked if they are quoted from memory.

        Example:
            >>> published_table("KM Fig. 4, dSprites").called
            'KM Fig. 4, dSprites (from memory)'
        """
        return f"{self.source} (from memory)" if self.from_memory else self.source

    @property
    def remarks(self) -> str:
        """Return remarks on the numbers; "" for none."""
        memory = "published numbers from memory, not confirmed" if self.from_memory else ""
        return "; ".join(filter(None, [memory, self.note]))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of rows and columns."""
        return *map(_name_of, self.row), *self.columns

    def number(self, one: str, other: str) -> float | None:
        """Return the number of a row and a column, in either order; None where there is none.

        Example:
            >>> table = published_table("WG Table 2, MNIST")
            >>> table.number("MVAE", "log p(x1)") == table.number("log p(x1)", "MVAE")
            True
        """
        for row in self.row:
            for column, value in zip(self.columns, row["values"], strict=True):
                if (one, other) in ((_name_of(row), column), (column, _name_of(row))):
                    return None if value == "" else value
        return None


def _name_of(row: Mapping[str, Any]) -> str:
    return str(row.get("name") or row.get("quantity") or row["metric"])


@dataclass(frozen=True)
class PublishedJudge(_OfData):
    """Accuracies in percent of a published attribute classifier, by attribute."""

    accuracy: dict[str, float]


@cache
def _file() -> dict[str, Any]:
    return parse_toml((resources.files("mmgen.results") / "published.toml").read_text(encoding="utf-8"))


@cache
def published_tables() -> tuple[Published, ...]:
    """Return every published table."""
    return tuple(
        Published(**{**table, "columns": tuple(table["columns"]), "row": tuple(table["row"])})
        for table in _file()["table"]
    )


def published_table(source: str) -> Published:
    """Return the table of a paper: "WG Table 2, MNIST".

    Raises:
        ValueError: There is no such table; suggests the nearest.
    """
    table = next((table for table in published_tables() if table.source == source), None)
    if table is None:
        raise ValueError(unknown_name("published table", source, [table.source for table in published_tables()]))
    return table


@cache
def published_judges() -> tuple[PublishedJudge, ...]:
    """Return the accuracies of every published attribute classifier."""
    return tuple(PublishedJudge(**judge) for judge in _file()["judge"])


def published_papers() -> dict[str, str]:
    """Return short names of the papers and their full titles."""
    return dict(_file()["papers"])
