"""An experiment with all rows written out: the published tables, and the stages at each scale."""

import json
import re
import shlex
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, field_validator, model_validator

from mmgen.commands import fields_of, option_names, stage_class, stage_names
from mmgen.core.errors import UsageError, clip, find_nearest_name, format_unknown_name
from mmgen.core.parsing import nested_items, split_list
from mmgen.experiments._tables import Selector, Table
from mmgen.settings.config import Settings
from mmgen.settings.registry import registry_of

_LAST = "set seed"
"""Options that are printed behind all others, in this order."""
_READ_NOWHERE = ("set", "report")
"""Settings that are no files to read: ``explore`` links to a report that is made after it."""
_WORD = re.compile(r"(?!(?:true|false|inf|nan)$)[A-Za-z][\w-]*", re.ASCII)
_KEY = re.compile(r"[a-z][a-z0-9_]+")

_MOST_SEEDS = 1000


@cache
def stage_commands() -> dict[str, str]:
    """Return the commands that a stage may be, with the name of the first argument; further ones are ``files``."""
    found = {name: stage_class(name).first_in_lists for name in stage_names()}
    return {name: first for name, first in found.items() if first is not None}


def parse_seeds(value: Any) -> Any:
    """Parse seeds: a count (5 for 0 to 4), a list of numbers, or text with commas.

    Raises:
        ValueError: There is none, one stands twice, or one is no whole number from 0.

    Example:
        >>> parse_seeds(3), parse_seeds("0,2,5"), parse_seeds([7])
        ((0, 1, 2), (0, 2, 5), (7,))
    """
    parts = split_list(value) if isinstance(value, str) else value
    if isinstance(value, str) and len(parts) == 1:
        parts = int(value) if value.strip().isdecimal() else parts
    if type(parts) is int:
        if not 1 <= parts <= _MOST_SEEDS:
            raise ValueError(f"seeds got {parts}, expected a number of seeds from 1 to {_MOST_SEEDS}")
        return tuple(range(parts))
    if not isinstance(parts, list | tuple):
        raise ValueError(f"seeds got {value!r}, expected a number of seeds (5) or a list of seeds (0, 1, 2)")
    seeds = [int(part) if isinstance(part, str) and part.isdecimal() else part for part in parts]
    if any(type(seed) is not int or not 0 <= seed < 2**63 for seed in seeds):
        raise ValueError(f"seeds got {value!r}, expected a number of seeds (5) or whole numbers from 0 (0,1,2)")
    if len(set(seeds)) != len(seeds):
        raise ValueError(f"seeds got {value!r}, expected different numbers; give each seed once")
    return tuple(seeds)


class Stage(Settings):
    """One step of an experiment: a command of ``mmgen`` with its settings, and the file that it makes."""

    why: str
    """What it is for, in a sentence."""
    command: str
    """Name of the command ("train")."""
    makes: str
    """The file that it makes, below the folder of the experiment."""
    of: str = ""
    """The row that it belongs to (a model), for ``--only``; empty for what all rows need."""
    once: StrictBool | None = None
    """Whether it is run once, however many seeds there are; by default data and classifiers are, and stages without a
    seed that read nothing which depends on one."""
    alone: StrictBool = False
    """Whether it has all cores of this machine for itself: others wait for it, even if they could run beside it."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Arguments and options of the command by name; ``set`` holds a table of nested settings."""

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values: Any) -> Any:
        """Refuse misspelt keys of a stage, which would otherwise count as options of its command."""
        if isinstance(values, Mapping) and isinstance(values.get("settings"), Mapping):
            for key in ("why", "command", "makes"):
                near = find_nearest_name(key, list(values["settings"])) if key not in values else ""
                if near:
                    raise ValueError(f"got '{clip(near, 80)}', did you mean '{key}'?")
        return values

    @field_validator("command")
    @classmethod
    def _check_command(cls, value: str) -> str:
        if value not in stage_commands():
            raise ValueError(format_unknown_name("command", value, list(stage_commands())))
        return value

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            json.dumps(value)
        except TypeError:
            raise ValueError("got a date or time, expected text, numbers, true or false, and lists of them") from None
        for key, inner in value.items():
            if not _KEY.fullmatch(key) or key in ("help", "output"):
                raise ValueError(
                    f"got the key {clip(repr(key), 80)}, expected an option of the command by its long name"
                )
            if (key == "set") != isinstance(inner, Mapping):
                raise ValueError(
                    f"{key} got {clip(repr(inner), 80)}, expected {'a table' if key == 'set' else 'a value'}"
                )
            if key in ("files", *stage_commands().values()) and any(
                _format_argument(one).startswith("-") for one in _as_list(inner)
            ):
                raise ValueError(f"{key} got {clip(repr(inner), 80)}, expected names that begin with no dash")
        return value

    @model_validator(mode="after")
    def _check_names(self) -> "Stage":
        known = _setting_names(self.command, str(self.settings.get("recipe", "")))
        if unknown := next((key for key in self.settings if key not in known), None):
            raise ValueError(format_unknown_name("setting", unknown, known))
        if zero := next((word for word in self.arguments if "\0" in word), None):
            raise ValueError(f"got {clip(repr(zero), 80)}, expected texts without the character 0; leave it out")
        return self

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of the command as a list of words."""
        places = (stage_commands()[self.command], "files")
        words = [
            self.command,
            *(_format_argument(one) for place in places for one in _as_list(self.settings.get(place, []))),
        ]
        for key, value in sorted(self.settings.items(), key=lambda item: (_LAST.find(item[0]), item[0])):
            if key == "set":
                words += [
                    word
                    for name, one in sorted(nested_items(value))
                    for word in ("--set", f"{name}={_format_toml(one)}")
                ]
            elif key not in places:
                option = f"--{key.replace('_', '-')}"
                for one in _as_list(value):
                    words += (
                        [option if one else f"--no-{option[2:]}"]
                        if isinstance(one, bool)
                        else [option, _format_argument(one)]
                    )
        return [*words, "-o", self.makes]

    @property
    def command_line(self) -> str:
        """Return the command as one line for a shell."""
        return shlex.join(["mmgen", *self.arguments])

    @property
    def seed(self) -> int | None:
        """Return the stage's seed; None if it has none."""
        seed = self.settings.get("seed")
        return seed if type(seed) is int else None

    @property
    def is_data(self) -> bool:
        """Return True if the stage makes a dataset."""
        return self.command == "make-data"

    @property
    def is_shared(self) -> bool:
        """Return True if runs with different seeds share the stage's file by default."""
        return self.command in ("make-data", "train-classifier")

    @property
    def possible_inputs(self) -> list[str]:
        """Return all texts in the settings that may be names of earlier stages' files."""
        values = [value for key, value in self.settings.items() if key not in _READ_NOWHERE]
        return [one for value in values for one in _as_list(value) if isinstance(one, str)]

    def inputs(self, earlier: list[str]) -> list[str]:
        """Return the files that the stage reads: files in ``earlier``, and datasets of the user."""
        return [
            file
            for file in self.possible_inputs
            if file in earlier or (file[-3:] == ".h5" and PurePath(file).is_absolute())
        ]

    def rename_files(self, names: Mapping[str, str], **changes: Any) -> "Stage":
        """Return a copy of the stage whose files have the new names in ``names``; ``changes`` replace its fields."""

        def rename_in(value: Any) -> Any:
            return [rename_in(one) for one in value] if isinstance(value, list) else names.get(value, value)

        settings = {key: value if key == "set" else rename_in(value) for key, value in self.settings.items()}
        return self.model_copy(update={"settings": settings, "makes": names.get(self.makes, self.makes), **changes})

    def replace_seed(self, seed: int) -> "Stage":
        """Return a copy of the stage with another seed; a stage without a seed is returned as it is."""
        return self if self.seed is None else self.model_copy(update={"settings": self.settings | {"seed": seed}})


@cache
def _setting_names(command: str, recipe: str) -> list[str]:
    """Return the names of all settings of a command, for make-data including the recipe's."""
    stage = stage_class(command)
    fields = fields_of(stage)
    options = [option_names(field)[0].partition("/")[0][2:] for field in fields if not field.is_positional]
    names = [name.replace("-", "_") for name in options if name not in ("output", "progress")]
    names += [first] if (first := stage_commands()[command]) else []
    names += ["files"] if command == "make-data" or any(field.name == "files" for field in fields) else []
    if command == "make-data" and recipe:
        try:
            names += stage(recipe).settings_names()
        except UsageError as error:
            raise ValueError(str(error)) from None
    return sorted(set(names))


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _format_argument(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _format_toml(value: Any) -> str:
    """Format a value as the option ``--set`` reads it, where simple words need no quotes."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else json.dumps(value)


class Scale(Settings):
    """The stages of an experiment at one scale, such as "small" or "full", and their folder."""

    about: str
    """Sentences on the differences from the paper and the duration."""
    folder: str
    """Folder of all files, below the current one; experiments that share stages share a folder."""
    stage: tuple[Stage, ...]
    """Stages in order; each reads files of those before it."""
    seeds: Annotated[tuple[int, ...], BeforeValidator(parse_seeds)] = ()
    """Seeds of every stage that has one: how many, from 0, or which; empty for the stages' own."""


class Plan(Settings):
    """An experiment: published tables, and the stages that measure their numbers at each scale."""

    title: str
    source: str
    dataset: str
    """Dataset of the paper, in words."""
    usual: StrictBool = False
    """Whether a table of several datasets means this one where the user names none."""
    table: tuple[Table, ...] = ()
    """The published tables, or parts of one."""
    scale: dict[str, Scale]

    @field_validator("scale")
    @classmethod
    def _check_order(cls, value: dict[str, Scale]) -> dict[str, Scale]:
        for size, scale in value.items():
            made = [stage.makes for stage in scale.stage]
            twice = next(((made.index(file), place) for place, file in enumerate(made) if file in made[:place]), None)
            if twice is not None:
                raise ValueError(
                    f"stages {twice[0] + 1} and {twice[1] + 1} of '{size}' both make {made[twice[0]]}, expected a "
                    "different file for each; put the name of the row, in braces, into the name of the file"
                )
            for place, stage in enumerate(scale.stage):
                if stage.makes in stage.possible_inputs:
                    raise ValueError(
                        f"stage {place + 1} of '{size}' reads {stage.makes}, which it makes itself, expected files "
                        "that earlier stages make; name one of those"
                    )
                if later := next((one for one in made[place + 1 :] if one in stage.possible_inputs), None):
                    raise ValueError(
                        f"stage {place + 1} of '{size}' reads {later}, which stage {made.index(later) + 1} makes, "
                        "expected files of stages before it; change their order"
                    )
        return value

    @model_validator(mode="after")
    def _check_scores(self) -> "Plan":
        """Refuse rows and columns whose scores no stage makes, or whose metric does not exist."""
        made = [stage.makes for scale in self.scale.values() for stage in scale.stage]
        metrics = registry_of("metric").names()
        parts: list[tuple[str, Selector]] = [(one.name, one) for table in self.table for one in table.row]
        parts += [(one.name, one) for table in self.table for one in table.column]
        for name, part in parts:
            if part.metric is not None and part.metric not in metrics:
                raise ValueError(f"'{name}': {format_unknown_name('metric', part.metric, metrics)}")
            if part.scores is not None and not any(fnmatchcase(file, part.scores) for file in made):
                raise ValueError(
                    f"'{name}' has the scores {part.scores}, which no stage makes; name a file that a stage makes"
                )
        return self

    def get_scale(self, scale: str) -> Scale:
        """Return the stages of the scale named ``scale``.

        Raises:
            UsageError: There is no such scale.
        """
        if scale not in self.scale:
            raise UsageError(format_unknown_name("scale", scale, list(self.scale)))
        return self.scale[scale]
