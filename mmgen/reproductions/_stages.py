"""What a list says: the published table, and at each scale the commands that make it."""

import shlex
from typing import Annotated

from pydantic import Field, field_validator

from mmgen.config import Settings
from mmgen.errors import UsageError
from mmgen.registry import unknown_name
from mmgen.reproductions._tables import Table

__all__ = ["DATA", "PROGRAM", "SEED", "Plan", "Scale", "Stage"]

PROGRAM = "mmgen"
DATA = "make-data"
SEED = "--seed"
_RUN = "{run}"


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

    @property
    def runs(self) -> "list[Stage]":
        """It as so many stages, each with its number filled in."""
        said = self.model_dump(include={"why", "command", "makes"})
        if self.times == 1:
            return [self]
        filled = ({key: text.replace(_RUN, str(run)) for key, text in said.items()} for run in range(self.times))
        return [self.model_copy(update={**texts, "times": 1}) for texts in filled]

    @field_validator("command")
    @classmethod
    def _typed(cls, value: str) -> str:
        words = shlex.split(value)
        if words[:1] != [PROGRAM] or len(words) < 2:
            raise ValueError(f"expected a command that begins with {PROGRAM}")
        return value

    @property
    def arguments(self) -> list[str]:
        """What follows ``mmgen``."""
        return shlex.split(self.command)[1:]

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
    table: tuple[Table, ...] = ()
    """The published table, or the parts of it."""
    scale: dict[str, Scale]

    @field_validator("scale")
    @classmethod
    def _ordered(cls, value: dict[str, Scale]) -> dict[str, Scale]:
        for scale in value.values():
            made = [stage.makes for stage in scale.stage]
            if len(set(made)) != len(made):
                raise ValueError("two stages make the same file")
        return value

    def at(self, scale: str) -> Scale:
        """The stages at a scale.

        Raises:
            UsageError: There is no such scale.
        """
        if scale not in self.scale:
            raise UsageError(unknown_name("scale", scale, list(self.scale)))
        return self.scale[scale]
