"""Folders as arguments that stand for the files in them."""

from pathlib import Path

__all__ = ["find_reported_files"]

_MOST = 1000
"""Names of a folder that are looked at."""
_LEFT_OUT = (".last.safetensors", ".log.jsonl")


def find_reported_files(folder: Path) -> list[Path]:
    """Return the models, aggregates, classifiers and scores in a folder; [] if it has no model."""
    try:
        names = sorted(folder.iterdir())[:_MOST]
    except OSError:  # no folder, or none that can be read
        return []
    files = [path for path in names if path.is_file() and not path.name.startswith(".")]
    made = [path for path in files if path.suffix in (".safetensors", ".jsonl") and not path.name.endswith(_LEFT_OUT)]
    return made if any(path.suffix == ".safetensors" for path in made) else []
