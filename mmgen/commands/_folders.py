"""Folders as arguments that stand for files in them."""

import os
from collections.abc import Sequence
from pathlib import Path

from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.parsing import LOG_ENDING
from mmgen.core.progress import Watch
from mmgen.settings.kinds import FileFinder

_STATE_ENDING = ".last.safetensors"


def expand_folders(paths: Sequence[Path], find: FileFinder, watch: Watch) -> list[Path]:
    """Return the paths, each folder replaced by the files for which it stands; empty ones among these are left out."""
    found = list(dict.fromkeys(file for path in paths for file in find(path) or [path]))
    empty = [file for file in found if file not in paths and not file.stat().st_size]
    if empty and len(empty) < len(found):
        watch.say(f"empty files are left out: {', '.join(map(str, empty[:3]))}{', ...' * (len(empty) > 3)}")
        return [file for file in found if file not in empty]
    return found


def _visible_files(folder: Path) -> list[Path]:
    from mmgen.artifacts.files import list_visible_files

    try:
        return [path for path in list_visible_files(folder) if os.path.isfile(path)]
    except OSError:  # no folder, or none that can be read
        return []


def find_score_files(folder: Path) -> list[Path]:
    """Return the scores in a folder."""
    return [path for path in _visible_files(folder) if path.suffix == ".jsonl" and not path.name.endswith(LOG_ENDING)]


def find_reported_files(folder: Path) -> list[Path]:
    """Return the models, aggregates, classifiers and scores in a folder; [] if it has no model."""
    made = [
        path
        for path in _visible_files(folder)
        if path.suffix in (".safetensors", ".jsonl") and not path.name.endswith((_STATE_ENDING, LOG_ENDING))
    ]
    return made if any(path.suffix == ".safetensors" for path in made) else []


def find_explored_files(folder: Path) -> list[Path]:
    """Return a folder's model, what was fitted to it, and scores; [] if it has no model.

    Among several models the one to which posteriors were fitted is chosen.

    Raises:
        UsageError: The folder holds several models to explore.
    """
    from mmgen.artifacts import read_header

    files = find_reported_files(folder)
    groups: dict[str, list[Path]] = {}  # model and fitted posteriors, by content id of the model
    fitted = set()
    for path in files:
        try:
            header = read_header(path)
        except ArtifactError:  # scores, or weights of another program
            continue
        if header.kind == "model":
            groups.setdefault(header.content_id, []).insert(0, path)
        elif header.kind in ("aggregate", "sharpener"):
            model = next((parent.content_id for parent in header.parents if parent.role == "model"), "")
            groups.setdefault(model, []).append(path)
            fitted.add(model)
    candidates = [group for model, group in groups.items() if model in fitted] or [*groups.values()]
    if len(candidates) > 1:
        choices = "; or ".join(f"mmgen explore {' '.join(map(str, group))}" for group in candidates[:3])
        raise UsageError(f"{folder} holds {len(candidates)} models, expected one: type {choices}")
    scores = [path for path in files if path.suffix == ".jsonl"]
    return [*candidates[0], *scores] if candidates else []
