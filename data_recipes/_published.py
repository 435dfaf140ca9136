"""Comparison of the user's files with a published dataset; differences are reported, not refused."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "SourceComparison",
    "published_source",
    "compare_sha256",
    "file_md5",
    "comparison_notes",
    "different_source",
    "unverified_source",
]

_BLOCK = 2**20


@dataclass(frozen=True)
class SourceComparison:
    """Result of a comparison of the user's files with a published dataset.

    Attributes:
        title: Name of the set.
        where: Place of the data.
        is_published: Whether they are that set; None where it cannot be told.
        why: The difference, or the part that was not compared.
    """

    title: str
    where: str
    is_published: bool | None
    why: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings to record in the dataset file; {} unless the files are known not to be the published ones."""
        return {"content": f"not {self.title} as published"} if self.is_published is False else {}

    @property
    def notes(self) -> list[str]:
        """Sentences for the user if the files differ from the published dataset, or may differ."""
        if self.is_published is False:
            return [
                f"{self.where} is not {self.title} as published ({self.why}): the dataset says so, and no published "
                "numbers will stand beside its scores"
            ]
        return [f"{self.where} is not verified to be {self.title} ({self.why})"] if self.is_published is None else []


def comparison_notes(content: SourceComparison | None) -> list[str]:
    """Return the notes of a comparison; [] if ``content`` is None."""
    return list(content.notes) if content is not None else []


def published_source(title: str, where: Path | str) -> SourceComparison:
    """Return the result for files that are the published dataset."""
    return SourceComparison(title, str(where), True)


def different_source(title: str, where: Path | str, difference: str) -> SourceComparison:
    """Return the result for files that differ from the published dataset."""
    return SourceComparison(title, str(where), False, difference)


def unverified_source(title: str, where: Path | str, limitation: str) -> SourceComparison:
    """Return the result of a comparison that cannot decide whether files are the published dataset."""
    return SourceComparison(title, str(where), None, limitation)


def compare_sha256(title: str, where: Path | str, sha256: str, published: str) -> SourceComparison:
    """Compare files with a published dataset by a hash of their content.

    Example:
        >>> compare_sha256("MNIST", "folder", "0123456789abcdef", "e10378d1a1706246").notes[0][:92]
        'folder is not MNIST as published (SHA-256 of its content 0123456789ab..., expected e10378d1a'
    """
    if sha256 == published:
        return published_source(title, where)
    return different_source(title, where, f"SHA-256 of its content {sha256[:12]}..., expected {published[:12]}...")


def file_md5(path: Path) -> str:
    """Return the MD5 of a regular file, hexadecimal; "" if it cannot be read."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()
