"""Suggestions for frequent mistakes on the command line."""

import os
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from mmgen.core.errors import clip

__all__ = ["folder_for_file", "holds_pictures", "suggest_command", "suggest_recipe", "suggest_quotes"]

_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
_MOST = 1000  # names of a folder that are looked at
_SHOWN = 6
_ENDINGS = {"dataset": (".h5",), "file of scores": (".jsonl",)}


def _names(folder: Path, depth: int = 0) -> Iterator[str]:
    """Yield names of files in a folder and in those inside it, sorted, a thousand at most of each."""
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
    """Return whether a folder, or one in it, has a file whose name ends as those of pictures do."""
    return any(name.lower().endswith(_PICTURES) for name in islice(_names(folder, 2), _MOST))


def suggest_recipe(text: str) -> str:
    """Return a suggestion for pictures that were named in place of a recipe; "" if it is no folder or archive."""
    if not os.path.isdir(text) and not (os.path.isfile(text) and text.lower().endswith(".zip")):
        return ""
    what = "a folder" if os.path.isdir(text) else "an archive"
    return f"{text} is {what}, expected a recipe; of your own pictures: mmgen make-data folder {shlex.quote(text)}"


def suggest_command(command: str, words: Sequence[str], lacking: str) -> str:
    """Return a suggestion for a command line that cannot be parsed; "" if its intention is unclear."""
    first = words[0] if words else ""
    if command == "quickstart" and suggest_recipe(first):
        return f"quickstart got {first}, expected options alone: did you mean --images {shlex.quote(first)}?"
    if lacking.startswith("FILE") and (found := _newest(_READS.get(command, ".safetensors"))):
        return f"Missing argument '{lacking}': a file that mmgen made, such as {shlex.quote(found)}."
    return ""


def suggest_quotes(words: Sequence[str]) -> str:
    """Return a suggestion for a description whose words are separate arguments; "" if there is none."""
    said = [word for word in words if "=" in word and not word.startswith("-")]
    together = shlex.quote(" ".join(said))
    return (
        f"{said[-1]} stands alone, expected a description as one word: did you mean --given {together}?" if said else ""
    )


_READS = {"train": ".h5", "train-classifier": ".h5", "baseline": ".h5", "compare": ".jsonl"}
"""Endings of the files that commands start from; for all others it is a model or an aggregate."""
_NOT_MEANT = (".last.safetensors", "judge.safetensors", "-samples.h5", ".log.jsonl")


def _newest(ending: str) -> str:
    """Return the newest file with an ending, here or in folders here; "" where there is none."""
    found = [*_here(f"*{ending}"), *_here(f"*/*{ending}")]
    known = [path for path in found if not path.name.endswith(_NOT_MEANT)]
    return str(max(known, key=os.path.getmtime, default=""))


def _here(pattern: str) -> Iterator[Path]:
    return islice((path for path in Path().glob(pattern) if path.is_file()), _MOST)


def folder_for_file(folder: Path, what: str) -> str:
    """Return a suggestion for a folder that was named where a file is expected."""
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
