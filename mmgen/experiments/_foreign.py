"""What a list from outside the package may say: commands that make files in its folder, out of files in its folder.

Somebody else's list is data, like any file: it must not start programs, send work elsewhere, read or write outside its
folder, or replace what is there. What it may not, the user can still type.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from mmgen.core.errors import UsageError, clip
from mmgen.core.parsing import Malformed, parse_toml
from mmgen.experiments._stages import DATA, Plan, Stage
from mmgen.settings.registry import registry_of

__all__ = ["COMMANDS", "ENDINGS", "NAMES_PROGRAMS", "check_foreign", "check_text"]

COMMANDS = (
    "make-data",
    "train-classifier",
    "train",
    "fit-aggregate",
    "eval",
    "baseline",
    "sample",
    "show",
    "plot",
    "report",
)
"""Commands that a stage may be."""

NAMES_PROGRAMS = ("blender-python", "scheduler")
"""Options, and settings by the same name, whose value is a program to start or a place where code is run."""

ENDINGS = (".h5", ".safetensors", ".jsonl", ".png", ".pdf", ".svg", ".html", ".md")
"""What the files that a stage makes may be."""

_REFUSED = {
    "--code": "runs a file",
    "--config": "reads settings that nobody has looked at: say each with --set",
    "--overwrite": "replaces what is there",
}
"""Options, and what they do."""

_RECIPES = "mmgen.data_recipes"  # the floor above: found by name, as members from outside are

_PROGRAM_NAMED = re.compile("|".join(rf"\b{name.replace('-', '[-_]')}\b" for name in NAMES_PROGRAMS))
_SENDS = re.compile(r"\blog[-_]to\b")
# A path begins with the word, behind a short option that it is typed together with, or behind what parts values.
_BEGINS = r"""(?:^|^-\w|[=+,:;\s"'\[{(])"""
_OUTSIDE = re.compile(rf"""{_BEGINS}(?:/|\\|~|[A-Za-z]:[/\\]|file:)|(?:{_BEGINS}|[/\\])\.\.(?:$|[/\\=+,;\s"'\]}})])""")


def check_text(value: Any, where: str) -> None:
    """Refuse text with control characters, which would reach the terminal, a script or a page.

    Raises:
        UsageError: Names where it stands.
    """
    if isinstance(value, str):
        strange = [letter for letter in value if not letter.isprintable() and letter != "\n"]
        if strange:
            raise UsageError(f"{where} holds the control character {strange[0]!r}; lists are plain text, take it out")
    elif isinstance(value, dict):
        for key, inner in value.items():
            check_text(key, where)
            check_text(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            check_text(inner, f"{where}[{number}]")


def check_foreign(plan: Plan, name: str) -> None:
    """Refuse a list from outside that asks for more than it may.

    Raises:
        UsageError: Names the stage, what it asks for and what can be done.
    """
    for size, scale in plan.scale.items():
        folder = PurePath(scale.folder)
        if not folder.parts or _OUTSIDE.search(scale.folder):
            raise UsageError(
                f"{name}: scale '{size}' has the folder {_shown(scale.folder)}, expected the name of one below "
                "this one; name it with --output if you want another"
            )
        for number, stage in enumerate(scale.stage, 1):
            for fault in _faults(stage):
                raise UsageError(
                    f"{name}: stage {number} of '{size}' {fault}; a list from outside the package may not do "
                    "that: edit it, and type that command yourself if you trust it"
                )


def _faults(stage: Stage) -> Iterator[str]:
    """What a stage may not do, in words that follow "stage 3"."""
    command, *words = stage.arguments
    if command not in COMMANDS:
        yield f"is mmgen {_shown(command)}"
    if command == DATA:
        recipes = registry_of(_RECIPES)
        for word in {*words} & {*recipes.names()}:
            if recipes.get(word).fetches_anything:
                yield f"makes data by {word}, which downloads whatever is named"
    for word in words:
        if word in _REFUSED:
            yield f"says {word}, and {_REFUSED[word]}"
        for text in _texts(word):
            if named := _PROGRAM_NAMED.search(text):
                yield f"says {_shown(word)}: {named[0]} is a program or a place that runs code"
            if _SENDS.search(text):
                yield f"says {_shown(word)}, which sends its log elsewhere"
            if _OUTSIDE.search(text):
                yield f"says {_shown(word)}, which leads out of its folder"
    if _OUTSIDE.search(stage.makes) or PurePath(stage.makes).suffix not in ENDINGS or stage.makes[:1] in (".", "-"):
        yield f"makes {_shown(stage.makes)}, no file of its folder that ends in {', '.join(ENDINGS)}"
    if _outputs(words) != [stage.makes]:
        yield f"writes elsewhere than to {_shown(stage.makes)}: it has to say -o with that name, once"


def _texts(word: str) -> Iterator[str]:
    """A word, and every key and text that settings in it have, as TOML reads them: there an escape is a letter."""
    yield word
    text, equals = word, "="
    for _ in range(2):  # VALUE, KEY=VALUE
        if not equals:
            return
        with suppress(Malformed):  # plain text, looked at already, or what the command refuses
            yield from _inside(parse_toml(f"value = {text}"))
        _, equals, text = text.partition("=")


def _inside(value: Any) -> Iterator[str]:
    """Every key and text of nested values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _inside(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _inside(inner)


def _shown(text: str) -> str:
    """Words of a list for a message: on one line, and not too many."""
    return repr(clip(text, 100))


def _outputs(words: list[str]) -> list[str]:
    """Values of --output."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    return [value for word, value in pairs if word in ("-o", "--output")]
