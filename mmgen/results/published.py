"""Published numbers of papers, read from published.toml, here and in worlds, with the datasets that they are of."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mmgen.core.errors import format_unknown_name
from mmgen.core.parsing import parse_toml
from mmgen.core.worlds import added_folders


@dataclass(frozen=True)
class _OnDataset:
    """Base class of published numbers, with the dataset on which they were measured.

    Attributes:
        source: The paper and its table or figure.
        recipe: Recipe of the dataset; "" if there is none.
        settings: Settings of that recipe that give the paper's dataset: size, binarisation, source.
    """

    source: str
    recipe: str
    settings: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def differences(self, settings: Mapping[str, Any]) -> list[str]:
        """Describe how a dataset made with ``settings`` by the same recipe differs from the paper's; [] if it does not.

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
class PublishedTable(_OnDataset):
    """Table of numbers from a paper; published.toml explains the fields."""

    dataset: str
    columns: tuple[str, ...]
    row: tuple[dict[str, Any], ...]
    spread_means: str = ""
    from_memory: bool = False
    note: str = ""

    @property
    def label(self) -> str:
        """Name of the paper's table, with "(from memory)" if its numbers were not checked against the paper.

        Example:
            >>> published_table("KM Fig. 4, dSprites").label
            'KM Fig. 4, dSprites (from memory)'
        """
        return f"{self.source} (from memory)" if self.from_memory else self.source

    @property
    def remarks(self) -> str:
        """Remarks on the published numbers for a footnote; "" without any."""
        memory = "published numbers from memory, not confirmed" if self.from_memory else ""
        return "; ".join(filter(None, [memory, self.note]))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the table's rows, then of its columns."""
        return *map(_row_name, self.row), *self.columns

    def number(self, first_name: str, second_name: str) -> float | None:
        """Return the number at a row and a column, named in either order; None if the table has no such number.

        Example:
            >>> table = published_table("WG Table 2, MNIST")
            >>> table.number("MVAE", "log p(x1)") == table.number("log p(x1)", "MVAE")
            True
        """
        for row in self.row:
            for column, value in zip(self.columns, row["values"], strict=True):
                if (first_name, second_name) in ((_row_name(row), column), (column, _row_name(row))):
                    return None if value == "" else value
        return None


def _row_name(row: Mapping[str, Any]) -> str:
    return str(row.get("name") or row.get("quantity") or row["metric"])


@dataclass(frozen=True)
class PublishedClassifier(_OnDataset):
    """Published attribute classifier: its accuracy for each attribute in percent, and its dataset."""

    accuracy: dict[str, float]


@cache
def _read_files() -> dict[str, Any]:
    """Read the file of this folder, then those that worlds add to it."""
    folders = (Path(__file__).parent, *added_folders("mmgen.results").values())
    read = [parse_toml((folder / "published.toml").read_text(encoding="utf-8")) for folder in folders]
    return {
        "papers": {name: title for file in read for name, title in file.get("papers", {}).items()},
        "table": [table for file in read for table in file["table"]],
        "judge": [judge for file in read for judge in file.get("judge", [])],
    }


@cache
def published_tables() -> tuple[PublishedTable, ...]:
    """Return all tables of papers in published.toml."""
    return tuple(
        PublishedTable(**{**table, "columns": tuple(table["columns"]), "row": tuple(table["row"])})
        for table in _read_files()["table"]
    )


def published_table(source: str) -> PublishedTable:
    """Return the table of a paper by its name, such as "WG Table 2, MNIST".

    Raises:
        ValueError: There is no such table; the message suggests the nearest.
    """
    table = next((table for table in published_tables() if table.source == source), None)
    if table is None:
        raise ValueError(format_unknown_name("published table", source, [table.source for table in published_tables()]))
    return table


@cache
def published_classifiers() -> tuple[PublishedClassifier, ...]:
    """Return the accuracies of all published attribute classifiers."""
    return tuple(PublishedClassifier(**judge) for judge in _read_files()["judge"])


def published_papers() -> dict[str, str]:
    """Return the full titles of papers by short name."""
    return dict(_read_files()["papers"])
