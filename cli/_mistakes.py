"""Sentences for mistakes that many people make: what they most likely meant."""

import os
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from mmgen.errors import clip

__all__ = ["folder_for_file", "holds_pictures", "meant_pictures"]

_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
_MOST = 1000  # names of a folder that are looked at
_SHOWN = 6
_ENDINGS = {"dataset": (".h5",), "file of scores": (".jsonl",)}


def _names(folder: Path, depth: int = 0) -> Iterator[str]:
    """Names of files in a folder and those in it, sorted, a thousand at most of each."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)[:_MOST]
    except OSError:
        return
    for entry in entries:
        if os.path.isfile(entry.path) and not entry.name.startswith("."):
            yield entry.name
        elif depth and os.path.isdir(entry.path) and not os.path.islink(entry.path):
            yield from _names(Path(entry.path), depth - 1)


def holds_pictures(folder: Path) -> bool:
    """Whether a folder, or one in it, has a file whose name ends as those of pictures do."""
    return any(name.lower().endswith(_PICTURES) for name in islice(_names(folder, 2), _MOST))


def meant_pictures(text: str) -> str:
    """The sentence for pictures that were named where a recipe is expected; "" where it is no folder and no archive."""
    if not os.path.isdir(text) and not (os.path.isfile(text) and text.lower().endswith(".zip")):
        return ""
    what = "a folder" if os.path.isdir(text) else "an archive"
    return f"{text} is {what}, expected a recipe; of your own pictures: mmgen make-data folder {shlex.quote(text)}"


def folder_for_file(folder: Path, what: str) -> str:
    """The sentence for a folder that was named where a file is expected.

    Args:
        folder: The folder.
        what: What the file should be ("dataset").
    """
    said = f"{folder} is a folder, expected a {what}"
    made = [
        name
        for name in _names(folder)
        if name.endswith(_ENDINGS.get(what, (".safetensors",)))
        and not name.endswith((".last.safetensors", ".log.jsonl"))
    ]
    if made:
        more = f" and {len(made) - _SHOWN} more" if len(made) > _SHOWN else ""
        return f"{said}: name one of those in it, {clip(', '.join(made[:_SHOWN]), 300)}{more}"
    if holds_pictures(folder):
        typed = shlex.quote(str(folder))
        return (
            f"{said}: make a dataset of its pictures with mmgen make-data folder {typed}, or everything at once with "
            f"mmgen quickstart --images {typed}"
        )
    return f"{said}; name one"
