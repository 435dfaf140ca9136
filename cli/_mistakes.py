"""Suggestions for frequent mistakes on the command line."""

import os
import shlex
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path

from mmgen.core.errors import clip

__all__ = [
    "holds_pictures",
    "suggest_command",
    "suggest_file_in_folder",
    "suggest_option",
    "suggest_quotes",
    "suggest_recipe",
]

_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
_MOST = 1000  # names of a folder that are read
_MOST_NAMED = 6
_ENDINGS_BY_KIND = {"dataset": (".h5",), "file of scores": (".jsonl",)}


def _file_names(folder: Path, depth: int = 0) -> Iterator[str]:
    """Yield sorted names of files in a folder, down to a depth; at most a thousand of each folder."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)[:_MOST]
    except OSError:
        return
    for entry in entries:
        if os.path.isfile(entry.path) and not entry.name.startswith("."):
            yield entry.name
        elif depth and os.path.isdir(entry.path) and not os.path.islink(entry.path):
            yield from _file_names(Path(entry.path), depth - 1)


def holds_pictures(folder: Path) -> bool:
    """Return whether a folder, or one up to two levels below it, has a file with the ending of a picture."""
    return any(name.lower().endswith(_PICTURES) for name in islice(_file_names(folder, 2), _MOST))


def suggest_recipe(text: str) -> str:
    """Return a suggestion for pictures named in place of a dataset recipe; "" if ``text`` is no folder or archive."""
    if not os.path.isdir(text) and not (os.path.isfile(text) and text.lower().endswith(".zip")):
        return ""
    kind = "a folder" if os.path.isdir(text) else "an archive"
    return (
        f"{text} is {kind}, expected a recipe; for your own pictures type: mmgen make-data folder {shlex.quote(text)}"
    )


def suggest_command(command: str, words: Sequence[str], missing: str) -> str:
    """Suggest a command line in which the argument ``missing`` is filled in; "" if the intention is unclear."""
    first = words[0] if words else ""
    if command == "quickstart" and suggest_recipe(first):
        return f"quickstart got {first}, expected only options: did you mean --images {shlex.quote(first)}?"
    if command == "quickstart" and first and not first.startswith("-"):
        return (
            f"quickstart got {first}, expected only options: --data NAME for pictures of mmgen, --images FOLDER "
            "for your own"
        )
    if missing in ("FILE", "FILES...") and (file := _newest_file(_INPUT_ENDINGS.get(command, ".safetensors"))):
        return f"Missing argument '{missing}': name a file that mmgen made, such as {shlex.quote(file)}."
    return ""


def suggest_quotes(words: Sequence[str]) -> str:
    """Suggest quotes for a description that was typed as several arguments; "" if there is none."""
    if "--given" in words:
        after = words[words.index("--given") + 1 :]
        described = [*takewhile(lambda word: not word.startswith("-"), after)]
        if len(described) > 1:
            return (
                f"{described[1]} is a separate argument, expected a description in quotes: did you mean --given "
                f"{shlex.quote(' '.join(described))}?"
            )
    assignments = [word for word in words if "=" in word and not word.startswith("-")]
    quoted = shlex.quote(" ".join(assignments))
    return (
        f"{assignments[-1]} is a separate argument, expected a description in quotes: did you mean --given {quoted}?"
        if assignments
        else ""
    )


_SETTINGS_OF = {
    "train": {
        "model": "mmgen.models:MultimodalSettings",
        "objective": "mmgen.objectives.elbo:Elbo",
        "data": "mmgen.models:DataSettings",
    },
    "fit-aggregate": {"aggregate": "mmgen.posteriors:AggregateSettings"},
}
"""Classes of settings without options of their own, by command and table."""


def suggest_option(command: str, option: str, options: Collection[str]) -> str:
    """Suggest what was meant by an option that a command does not have; "" without a guess."""
    if option == "--seeds":
        return f"--seeds is for the commands that train; give mmgen {command} once for each --seed"
    from mmgen.settings.config import FOREIGN_NAMES
    from mmgen.settings.declared import read_class_fields

    typed = option.removeprefix("--").replace("-", "_")
    name = FOREIGN_NAMES.get(typed, typed)
    known = f"--{name.replace('_', '-')}"
    if known in options:
        return f"No such option: {option}: did you mean {known}?"
    tables = {**_SETTINGS_OF.get(command, {}), "training": "mmgen.training.settings:TrainingSettings"}
    for table, where in tables.items() if "--set" in options and command != "make-data" else ():
        if name in read_class_fields(where):
            return f"No such option: {option}: did you mean --set {table}.{name}=VALUE?"
    return ""


_INPUT_ENDINGS = {"train": ".h5", "train-classifier": ".h5", "baseline": ".h5", "compare": ".jsonl"}
"""Endings of input files by command; the others read a model or aggregate."""
_NO_INPUTS = (".last.safetensors", "judge.safetensors", "-samples.h5", ".log.jsonl")
_LATENTS = "-latents-"


def _newest_file(ending: str) -> str:
    """Return the newest file with this ending in the current folder or its subfolders; "" without one."""
    files = [*_glob_files(f"*{ending}"), *_glob_files(f"*/*{ending}")]
    candidates = [path for path in files if not path.name.endswith(_NO_INPUTS) and _LATENTS not in path.name]
    return str(max(candidates, key=os.path.getmtime, default=""))


def _glob_files(pattern: str) -> Iterator[Path]:
    return islice((path for path in Path().glob(pattern) if path.is_file()), _MOST)


def suggest_file_in_folder(folder: Path, kind: str) -> str:
    """Return the error message for a folder in place of a file, which suggests files in the folder."""
    problem = f"{folder} is a folder, expected a {kind}"
    files = [
        name
        for name in _file_names(folder)
        if name.endswith(_ENDINGS_BY_KIND.get(kind, (".safetensors",)))
        and not name.endswith((".last.safetensors", ".log.jsonl"))
        and not (kind == "dataset" and _LATENTS in name)
    ]
    if files:
        more = f" and {len(files) - _MOST_NAMED} more" if len(files) > _MOST_NAMED else ""
        return f"{problem}: name one of the files in it, {clip(', '.join(files[:_MOST_NAMED]), 300)}{more}"
    if holds_pictures(folder):
        typed = shlex.quote(str(folder))
        return (
            f"{problem}: make a dataset of its pictures with mmgen make-data folder {typed}, or run everything with "
            f"mmgen quickstart --images {typed}"
        )
    return f"{problem}; name a file"
