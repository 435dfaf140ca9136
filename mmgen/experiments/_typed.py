"""What two commands have to have in common so that they make the same file, as far as words can tell."""

import os
from pathlib import Path

from mmgen.experiments._stages import split

__all__ = ["choices", "words"]

_FILES = (".h5", ".safetensors")
_MOST = 20_000  # characters; no command of a person or of a list has more

_OUTPUT = ("-o", "--output")
_MACHINE = (*_OUTPUT, "--workers", "--scheduler", "--seed")
"""Options of make-data that change nothing of what it makes, and the seed, which headers tell."""


def words(command: str) -> list[str]:
    """A command word by word, without where it writes, and with files by their kind alone: their content is compared.

    Commands with the same words make the same file; those with others may.
    """
    return [_kind(word) for option in _options(command, _OUTPUT) for word in option]


def choices(command: str, folder: Path) -> list[list[str]]:
    """Each option with its values, without those that change nothing of a dataset; paths as they are from ``folder``.

    Commands with other choices make other datasets, but for defaults that only one of them says. Their order says
    nothing, unless an option is there twice.
    """
    arguments, *options = _options(command, _MACHINE)
    placed = [[option[0], *(_placed(word, folder) for word in option[1:])] for option in options]
    return [[_placed(word, folder) for word in arguments], *sorted(placed, key=_what_is_chosen)]


def _placed(word: str, folder: Path) -> str:
    """A word as the path that it may be."""
    return word if "=" in word else os.path.abspath(folder / word)


def _what_is_chosen(option: list[str]) -> tuple[str, str]:
    """An option's name, and which setting it sets (``--set size=32``)."""
    name, *values = option
    setting, equals, _ = values[0].partition("=") if values else ("", "", "")
    return name, setting if equals else ""


def _options(command: str, left_out: tuple[str, ...]) -> list[list[str]]:
    """What comes before the first option, then every option with what follows it."""
    try:
        typed = split(command) if len(command) <= _MOST else [command]
    except ValueError:  # quotes without an end, as nobody can have typed
        typed = [command]
    options: list[list[str]] = [[]]
    for word in typed:
        if word.startswith("-") and not word[1:2].isdecimal():
            options.append([word])
        else:
            options[-1].append(word)
    for option in options[1:]:
        if option[0] in left_out:
            options[0] += option[2:]  # what follows its value stands for itself
        elif option[0] == "--overwrite":
            options[0] += option[1:]
    return [options[0], *(option for option in options[1:] if option[0] not in (*left_out, "--overwrite"))]


def _kind(word: str) -> str:
    """A file by its kind, everything else as it is."""
    return next((kind for kind in _FILES if word.endswith(kind) and "=" not in word), word)
