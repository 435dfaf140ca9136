"""Annotations of the fields of stages, from which help, pages and signatures are made."""

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from mmgen.settings.declared import SourceField, read_class_fields, read_class_fields_in
from mmgen.settings.kinds import Range
from mmgen.settings.switches import Positional

__all__ = [
    "Assignments",
    "Commas",
    "Input",
    "MemberOf",
    "MemberSettings",
    "OptionName",
    "Reads",
    "Source",
    "StageField",
    "Words",
    "fields_of",
    "option_names",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Input:
    """Marks a positional field: one or several existing files; ``-`` reads paths from stdin.

    Attributes:
        what: What the file should be, for messages ("dataset").
        metavar: What help calls it.
        folders: Whether a folder stands for the files in it that a report reads.
    """

    what: str
    metavar: str = "FILE"
    folders: bool = False


class OptionName:
    """Marks an option whose name differs from its field's: ``OptionName("--from", "-f", metavar="MODEL")``.

    Args:
        names: As it is typed; a short one alone stands beside the field's name.
        metavar: What help calls the value.
        default: The default in words, where the field's is None.
        hidden: Whether help leaves it out.
    """

    def __init__(self, *names: str, metavar: str = "", default: str = "", hidden: bool = False) -> None:
        self.names, self.metavar, self.default, self.hidden = names, metavar, default, hidden


@dataclass(frozen=True)
class Reads:
    """Marks an option that names a file which must exist.

    Attributes:
        what: What the file should be, for messages.
        makes: What makes one, as the end of a sentence.
        piped: Whether ``-`` reads the path from stdin.
    """

    what: str
    makes: str = ", or make it with the command before"
    piped: bool = False


class Source:
    """Marks an option that names a picture or a file of pictures, or kinds of them."""


class MemberOf:
    """Marks a field that takes the name of a member of a room, or one of some further words."""

    def __init__(self, room: str, *more: str) -> None:
        self.room, self.more = room, more


class Words:
    """Marks a field with the words that shell completion offers for it."""

    def __init__(self, *words: str) -> None:
        self.words = words


class Commas:
    """Marks a field of several values that are typed as one word with commas between.

    Args:
        none: The word for no value at all.
    """

    def __init__(self, none: str = "") -> None:
        self.none = none


class Assignments:
    """Marks the field of further settings, ``--set KEY=VALUE`` on the command line, a mapping in Python."""


class MemberSettings(Assignments):
    """Marks the field that holds the settings of the chosen member, as options and keywords of their own.

    The stage then has ``settings_names``, which returns their names.
    """


@dataclass(frozen=True)
class StageField:
    """A field of a stage, as help, pages and signatures are made from it.

    Attributes:
        name: Its name.
        hint: Its type with all that is annotated.
        about: Its docstring on one line.
        default: Its default; ``dataclasses.MISSING`` where it must be given.
        default_words: The default in words, "" where ``default`` says it.
        range: Bounds of a number.
        choices: The words that it may be; empty where it may be others.
    """

    name: str
    hint: Any
    about: str
    default: Any
    default_words: str
    range: Range
    choices: tuple[str, ...] = ()

    def mark(self, kind: type[T]) -> T | None:
        """Return the annotation of a kind; None without one."""
        return next((one for one in _marks(self.hint) if isinstance(one, kind)), None)

    @property
    def positional(self) -> bool:
        """True for a positional argument."""
        return self.mark(Input) is not None or self.mark(Positional) is not None or self.default is MISSING

    @property
    def leaves(self) -> list[Any]:
        """Plain types of a value, including those of list items."""
        return list(dict.fromkeys(_leaves(self.hint)))

    @property
    def several(self) -> bool:
        """True if the field takes several values."""
        return any(_is_sequence(one) for one in _alternatives(self.hint))


def _alternatives(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Annotated:
        yield from _alternatives(get_args(hint)[0])
    elif get_origin(hint) in (Union, UnionType):
        for one in get_args(hint):
            yield from _alternatives(one)
    else:
        yield hint


def _is_sequence(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Collection) and not issubclass(origin, Mapping)


def _leaves(hint: Any) -> Iterator[Any]:
    for one in _alternatives(hint):
        if _is_sequence(one):
            yield from _leaves(get_args(one)[0])
        elif one is not type(None):
            yield one


def _marks(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        yield from marks
        yield from _marks(inner)
    elif get_origin(hint) in (Union, UnionType) or _is_sequence(hint):
        for one in get_args(hint):
            yield from _marks(one)


def option_names(field: StageField) -> list[str]:
    """Return the names of an option on the command line, the long one first."""
    named = field.mark(OptionName)
    names = [*named.names] if named else []
    if field.mark(Assignments):
        names = ["--set"]
    if not any(name.startswith("--") for name in names):
        names = [f"--{field.name.replace('_', '-')}", *names]
    return names


def fields_of(stage: Any) -> tuple[StageField, ...]:
    """Return the fields of a stage's class, those of its own first."""
    return _fields_of(stage)


@cache
def _fields_of(stage: Any) -> tuple[StageField, ...]:
    hints = get_type_hints(stage, include_extras=True)
    own = _declared_by(stage)
    others = {name: one for where in stage.described_by for name, one in read_class_fields(where).items()}
    first = [name for kind in stage.__mro__ for name in getattr(kind, "__annotations__", {})]
    listed = sorted(fields(stage), key=lambda field: first.index(field.name))
    return tuple(
        _field(field, hints[field.name], own.get(field.name), others.get(field.name), stage.shows_defaults)
        for field in listed
    )


def _field(
    field: "Field[Any]", hint: Any, own: SourceField | None, other: SourceField | None, shows_defaults: bool
) -> StageField:
    other = None if own else other
    marks = [*_marks(hint)]
    words = next((one.default for one in marks if isinstance(one, OptionName)), "")
    if other and shows_defaults and field.default is None and other.default not in (None, ""):
        words = words or str(other.default)
    limits = next((one for one in marks if isinstance(one, Range)), None)
    limits = limits or (Range(other.least, other.most) if other else Range())
    about = own.about if own else other.about if other else ""
    return StageField(field.name, hint, about, field.default, words, limits, other.choices if other else ())


def _declared_by(stage: Any) -> dict[str, SourceField]:
    """Docstrings of the fields of a class and its bases; a field without one has its base's."""
    found: dict[str, SourceField] = {}
    for kind in reversed([one for one in stage.__mro__ if "__dataclass_fields__" in vars(one)]):
        module = sys.modules[kind.__module__]
        here = read_class_fields_in(Path(str(module.__file__)), kind.__name__)
        found |= {name: one for name, one in here.items() if one.about}
    return found
