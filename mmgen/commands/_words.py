"""Checks of descriptions against the headers of files, before torch and the model are loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.core.errors import ArtifactError

__all__ = ["check_words"]


@dataclass(frozen=True)
class _Vocabulary:
    """The attributes of a model's data, with their values."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


def check_words(path: Path, descriptions: Sequence[str]) -> None:
    """Raise an error if a description uses attributes or values that the model's data do not have.

    Args:
        path: A model, an aggregate, or the folder of an export.
        descriptions: As they were typed.

    Raises:
        UsageError: An attribute or a value does not exist; the nearest is suggested.
    """
    if not any(descriptions):
        return
    from mmgen.descriptions import is_caption, parse

    words, has_text = _read_vocabulary(path)
    if words is None:
        return
    for text in descriptions:
        if not (has_text and is_caption(text)):
            parse(text, words)


def _read_vocabulary(path: Path) -> tuple[_Vocabulary | None, bool]:
    """Read a model's attributes (None without any) and whether it has captions, from file headers alone."""
    from mmgen.artifacts import find_parent, read_header
    from mmgen.artifacts.files import find_main_exported_file

    try:
        file = find_main_exported_file(path) if path.is_dir() else path
        header = read_header(file)
        if header.kind in ("aggregate", "sharpener"):
            header = read_header(find_parent(file, "model"))
    except ArtifactError:  # whoever loads it says what is wrong
        return None, False
    data = header.settings.get("data")
    described = data.get("modalities") if isinstance(data, Mapping) else None
    tables: list[Any] = list(described.values()) if isinstance(described, Mapping) else []
    kinds = [table.get("kind") for table in tables if isinstance(table, Mapping)]
    attributes = next(
        (table for table in tables if isinstance(table, Mapping) and table.get("kind") == "attributes"), None
    )
    if attributes is None:
        return None, False
    try:
        words = _Vocabulary(
            tuple(map(str, attributes["names"])), tuple(tuple(map(str, each)) for each in attributes["values"])
        )
    except (KeyError, TypeError):
        return None, False
    return (words if len(words.names) == len(words.values) else None), "text" in kinds
