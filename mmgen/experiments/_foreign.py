"""What an experiment file from outside the package may say: commands that make files in its folder from files there.

Somebody else's file is data: it must not start programs, send work elsewhere, read or write outside its folder, or
replace what is there. The user can still type what it may not say.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from mmgen.core.errors import UsageError, clip
from mmgen.experiments._stages import Plan, Stage
from mmgen.settings.registry import registry_of

__all__ = ["ENDINGS", "REFUSED", "check_outside_plan", "check_text"]

ENDINGS = (".h5", ".safetensors", ".jsonl", ".png", ".pdf", ".svg", ".html", ".md")
"""Endings of the files that a stage may make."""
REFUSED = {
    "code": "runs a file",
    "config": "reads settings that nobody has looked at: say each under set",
    "overwrite": "replaces what is there",
    "scheduler": "names a place that runs code",
    "blender_python": "names a program",
    "log_to": "sends the log elsewhere",
}
"""Settings that a stage may not have, under any name of a table, and what they do."""

_REFUSED = re.compile(rf"\b(?:{'|'.join(REFUSED)})\b")
_BEGINS = r"""(?:^|[=+,:;\s"'\[{(])"""
_OUTSIDE = re.compile(rf"""{_BEGINS}(?:/|~|[A-Za-z]:/|file:)|(?:{_BEGINS}|/)\.\.(?:$|[/=+,;\s"'\]}})])|\\""")
"""A path that leads out of the folder; a backslash may spell one."""


def check_text(value: Any, where: str) -> None:
    """Refuse text of an experiment file with control characters, which could steer the terminal."""
    if isinstance(value, str):
        if strange := [letter for letter in value if not letter.isprintable() and letter != "\n"]:
            raise UsageError(
                f"{where} holds the control character {strange[0]!r}; experiment files are plain text, remove it"
            )
    elif isinstance(value, dict):
        for key, inner in value.items():
            check_text(key, where)
            check_text(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            check_text(inner, f"{where}[{number}]")


def check_outside_plan(plan: Plan, name: str) -> None:
    """Refuse a user's experiment file with options, recipes or paths that are not safe to run."""
    for size, scale in plan.scale.items():
        if not PurePath(scale.folder).parts or _OUTSIDE.search(scale.folder):
            raise UsageError(
                f"{name}: scale '{size}' has the folder {_quote(scale.folder)}, expected a folder below "
                "the current one; choose another with --output"
            )
        for number, stage in enumerate(scale.stage, 1):
            if fault := next(_forbidden_parts(stage), None):
                raise UsageError(
                    f"{name}: stage {number} of '{size}' {fault}; an experiment from outside the package may not do "
                    "that: edit it, and type that command yourself if you trust it"
                )


def _forbidden_parts(stage: Stage) -> Iterator[str]:
    """Yield a phrase for each unsafe option, recipe or path of a stage."""
    recipes = registry_of("recipe")
    for recipe in {*stage.arguments} & {*recipes.names()} if stage.is_data else ():
        if recipes.get(recipe).fetches_anything:
            yield f"makes data by {recipe}, which downloads whatever is named"
    for text, is_key in _nested_texts(stage.settings):
        if is_key and (refused := _REFUSED.search(text.replace("-", "_"))):
            yield f"says {refused[0]}, and that {REFUSED[refused[0]]}"
        if _OUTSIDE.search(text):
            yield f"says {_quote(text)}, which leads out of its folder"
    if _OUTSIDE.search(stage.makes) or PurePath(stage.makes).suffix not in ENDINGS or stage.makes[:1] in (".", "-"):
        yield f"makes {_quote(stage.makes)}, no file of its folder that ends in {', '.join(ENDINGS)}"


def _nested_texts(value: Any) -> Iterator[tuple[str, bool]]:
    """Yield (text, is_key) for every text in nested values."""
    if isinstance(value, str):
        yield value, False
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield key, True
            yield from _nested_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _nested_texts(inner)


def _quote(text: str) -> str:
    """Quote text from a file for a message, on one line and of bounded length."""
    return repr(clip(text, 100))
