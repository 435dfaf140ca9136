"""Presets: the settings of published experiments, one TOML file each, with the source of each value."""

from importlib import resources
from itertools import takewhile

from mmgen.core.parsing import first_sentences

__all__ = ["describe_preset", "preset_names", "read_preset"]


def preset_names() -> list[str]:
    """List the names of all presets, such as "wu/mnist"."""
    return sorted(
        f"{folder.name}/{file.name.removesuffix('.toml')}"
        for folder in resources.files(__name__).iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    )


def read_preset(name: str) -> str:
    """Read the TOML text of a preset."""
    return resources.files(__name__).joinpath(*f"{name}.toml".split("/")).read_text(encoding="utf-8")


def describe_preset(name: str) -> str:
    """Return the description of a preset: the first sentences of its opening comment, without the last full stop."""
    comment = takewhile(lambda line: line.startswith("#"), read_preset(name).split("\n"))
    return first_sentences("\n".join(line.removeprefix("#") for line in comment))
