"""Presets: the settings of published experiments, one TOML file each, with the source of each value."""

from itertools import takewhile
from pathlib import Path

from mmgen.core.parsing import first_sentences
from mmgen.core.worlds import data_files

__all__ = ["describe_preset", "preset_names", "read_preset"]


def _files() -> dict[str, Path]:
    return data_files(__name__, Path(__file__).parent, "*/*.toml")


def preset_names() -> list[str]:
    """List the names of all presets, such as "wu/mnist"."""
    return sorted(_files())


def read_preset(name: str) -> str:
    """Read the TOML text of a preset."""
    return _files()[name].read_text(encoding="utf-8")


def describe_preset(name: str) -> str:
    """Return the description of a preset: the first sentences of its opening comment, without the last full stop."""
    comment = takewhile(lambda line: line.startswith("#"), read_preset(name).split("\n"))
    return first_sentences("\n".join(line.removeprefix("#") for line in comment))
