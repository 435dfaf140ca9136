"""What a list says: the published table, and at each scale the commands that make it."""

import re
import shlex
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from mmgen.core.errors import UsageError, clip
from mmgen.core.parsing import listed
from mmgen.experiments._tables import Selector, Table
from mmgen.settings.config import Settings
from mmgen.settings.registry import registry_of, unknown_name

__all__ = ["DATA", "JUDGE", "PROGRAM", "RUN", "SEED", "Plan", "Scale", "Stage", "seeds_of", "split"]

PROGRAM = "mmgen"
DATA = "make-data"
JUDGE = "train-classifier"
SEED = "--seed"
RUN = "{run}"


_MOST_SEEDS = 1000
_METRICS = "mmgen.metrics"


def seeds_of(value: Any) -> Any:
    """Seeds as they are said: 5 for 0 to 4, or which, as numbers or with commas between; each once.

    Raises:
        ValueError: None are said, or one twice, or one is no number from 0.

    Example:
        >>> seeds_of(3), seeds_of("0,2,5"), seeds_of([7])
        ((0, 1, 2), (0, 2, 5), (7,))
    """
    parts = listed(value) if isinstance(value, str) else value
    if isinstance(value, str) and len(parts) == 1:
        parts = int(value) if value.strip().isdecimal() else parts
    if type(parts) is int:
        if not 1 <= parts <= _MOST_SEEDS:
            raise ValueError(f"seeds got {parts}, expected how many, from 1 to {_MOST_SEEDS}")
        return tuple(range(parts))
    if not isinstance(parts, list | tuple):
        raise ValueError(f"seeds got {value!r}, expected how many (5) or which (0, 1, 2)")
    found = [int(part) if isinstance(part, str) and part.isdecimal() else part for part in parts]
    if any(type(seed) is not int or not 0 <= seed < 2**63 for seed in found):
        raise ValueError(f"seeds got {value!r}, expected how many (5) or which (0,1,2): whole numbers from 0")
    if len(set(found)) != len(found):
        raise ValueError(f"seeds got {value!r}, which says one of them twice")
    return tuple(found)


_WITH_VALUE = re.compile(r"(--[^=]+)=(.*)|(-o)(.+)", re.DOTALL)


def split(command: str) -> list[str]:
    """Words of a command, an option and its value apart however they are typed.

    Raises:
        ValueError: A quote has no end.

    Example:
        >>> split("mmgen train a.h5 --seed=3 --set=x=1 -om.safetensors")
        ['mmgen', 'train', 'a.h5', '--seed', '3', '--set', 'x=1', '-o', 'm.safetensors']
    """
    found: list[str] = []
    for word in shlex.split(command):
        typed = _WITH_VALUE.fullmatch(word)
        found += [part for part in typed.groups() if part is not None] if typed else [word]
    return found


class Stage(Settings):
    """One command."""

    why: str
    """What it is for, in a sentence."""
    command: str
    """What one would type, paths relative to the folder that it all happens in."""
    makes: str
    """The file that it makes there."""
    of: str = ""
    """The row that it belongs to (a model), for ``--only``; empty for what all rows need."""
    times: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often it is run: the number of the run, from 0, stands where why, command and makes say ``{run}``."""
    once: bool | None = None
    """Whether it is run once however many seeds there are; left out, what makes data and judges is, and nothing else
    that is given a seed, or a file that there is of each seed."""

    @property
    def runs(self) -> "list[Stage]":
        """It as so many stages, each with its number filled in."""
        return [self] if self.times == 1 else [self.numbered(run) for run in range(self.times)]

    def numbered(self, run: int) -> "Stage":
        """It with a number filled in."""
        said = self.model_dump(include={"why", "command", "makes"})
        return self.model_copy(update={key: text.replace(RUN, str(run)) for key, text in said.items()} | {"times": 1})

    @field_validator("command")
    @classmethod
    def _typed(cls, value: str) -> str:
        words = shlex.split(value)
        if words[:1] != [PROGRAM] or len(words) < 2:
            raise ValueError(f"got {clip(repr(value), 120)}, expected a command that begins with {PROGRAM}")
        return value

    @property
    def arguments(self) -> list[str]:
        """What follows ``mmgen``, as :func:`split` has it."""
        return split(self.command)[1:]

    def with_arguments(self, arguments: Iterable[str]) -> "Stage":
        """It with something else after ``mmgen``."""
        return self.model_copy(update={"command": shlex.join([PROGRAM, *arguments])})

    @property
    def seed(self) -> int | None:
        """What its command gives as --seed, if anything."""
        words = self.arguments
        said = words[words.index(SEED) + 1] if SEED in words[:-1] else ""
        return int(said) if said.isdecimal() else None

    @property
    def typed(self) -> str:
        """The command, each word quoted where a shell needs it: nothing in it ends it or begins another."""
        return shlex.join([PROGRAM, *self.arguments])

    @property
    def is_data(self) -> bool:
        """Whether it makes the dataset."""
        return self.arguments[0] == DATA


class Scale(Settings):
    """The stages at one size."""

    about: str
    """How it differs from what was published, and how long it takes."""
    folder: str
    """Where it all happens unless told otherwise; lists that share stages share a folder."""
    stage: tuple[Stage, ...]
    """In order."""
    seeds: Annotated[tuple[int, ...], BeforeValidator(seeds_of)] = ()
    """Seeds that every stage which has one is run with: a number of them, from 0, or which; none for each its own."""

    @field_validator("stage")
    @classmethod
    def _repeated(cls, value: tuple[Stage, ...]) -> tuple[Stage, ...]:
        return tuple(run for stage in value for run in stage.runs)


class Plan(Settings):
    """A published table and how to make it."""

    title: str
    source: str
    dataset: str
    """What the paper measured on."""
    usual: bool = False
    """Whether this is the dataset that is meant where none is said, for a table of several."""
    table: tuple[Table, ...] = ()
    """The published table, or the parts of it."""
    scale: dict[str, Scale]

    @field_validator("scale")
    @classmethod
    def _ordered(cls, value: dict[str, Scale]) -> dict[str, Scale]:
        for size, scale in value.items():
            made = [stage.makes for stage in scale.stage]
            twice = next(((made.index(file), place) for place, file in enumerate(made) if file in made[:place]), None)
            if twice is not None:
                raise ValueError(
                    f"stages {twice[0] + 1} and {twice[1] + 1} of '{size}' both make {made[twice[0]]}, expected a file "
                    f"of its own for each; what is run several times has {RUN} in its name"
                )
            for place, stage in enumerate(scale.stage):
                if later := next((one for one in made[place + 1 :] if one in stage.arguments), None):
                    raise ValueError(
                        f"stage {place + 1} of '{size}' reads {later}, which stage {made.index(later) + 1} makes, "
                        "expected files of stages before it; change their order"
                    )
        return value

    @model_validator(mode="after")
    def _measured(self) -> "Plan":
        """Whether each row and column is of scores that a stage makes, and of a metric that there is."""
        made = [stage.makes for scale in self.scale.values() for stage in scale.stage]
        metrics = registry_of(_METRICS).names()
        parts: list[tuple[str, Selector]] = [(one.name, one) for table in self.table for one in table.row]
        parts += [(one.name, one) for table in self.table for one in table.column]
        for name, part in parts:
            if part.metric is not None and part.metric not in metrics:
                raise ValueError(f"'{name}': {unknown_name('metric', part.metric, metrics)}")
            if part.scores is not None and not any(fnmatchcase(file, part.scores) for file in made):
                raise ValueError(f"'{name}' has the scores {part.scores}, which no stage makes; name those of one")
        return self

    def at(self, scale: str) -> Scale:
        """The stages at a scale.

        Raises:
            UsageError: There is no such scale.
        """
        if scale not in self.scale:
            raise UsageError(unknown_name("scale", scale, list(self.scale)))
        return self.scale[scale]
