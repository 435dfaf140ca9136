"""Comparison of the user's files with a published dataset; differences are reported, not refused."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "Content",
    "equal_content",
    "compare_sha256",
    "file_md5",
    "content_notes",
    "different_content",
    "unverified_content",
]

_BLOCK = 2**20


@dataclass(frozen=True)
class Content:
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
        """Entries for the dataset's settings; {} unless it is known to differ from the published set."""
        return {"content": f"not {self.title} as published"} if self.is_published is False else {}

    @property
    def notes(self) -> list[str]:
        """Lines for people if it differs from the published set, or may differ."""
        if self.is_published is False:
            return [
                f"{self.where} is not {self.title} as published ({self.why}): the dataset says so, and no published "
                "numbers will stand beside its scores"
            ]
        return [f"{self.where} is not verified to be {self.title} ({self.why})"] if self.is_published is None else []


def content_notes(content: Content | None) -> list[str]:
    """Return the notes of a comparison; [] if ``content`` is None."""
    return list(content.notes) if content is not None else []


def equal_content(title: str, where: Path | str) -> Content:
    """Return the result for files that are the published dataset."""
    return Content(title, str(where), True)


def different_content(title: str, where: Path | str, difference: str) -> Content:
    """Return the result for files that differ from the published dataset."""
    return Content(title, str(where), False, difference)


def unverified_content(title: str, where: Path | str, limitation: str) -> Content:
    """Return the result for files that may be the published dataset."""
    return Content(title, str(where), None, limitation)


def compare_sha256(title: str, where: Path | str, sha256: str, published: str) -> Content:
    """Compare files with a published dataset by a hash of their content.

    Example:
        >>> compare_sha256("MNIST", "folder", "0123456789abcdef", "e10378d1a1706246").notes[0][:92]
        'folder is not MNIST as published (SHA-256 of its content 0123456789ab..., expected e10378d1a'
    """
    if sha256 == published:
        return equal_content(title, where)
    return different_content(title, where, f"SHA-256 of its content {sha256[:12]}..., expected {published[:12]}...")


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
