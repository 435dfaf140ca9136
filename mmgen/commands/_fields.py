"""The fields of stages, from which options, help, pages and signatures are made."""

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from mmgen.settings.declared import SourceField, read_class_fields, read_class_fields_in
from mmgen.settings.kinds import InputFile, Option, Range

T = TypeVar("T")

_PLAIN = Option()


@dataclass(frozen=True)
class StageField:
    """A field of a command, from which its option, help and Python argument are made.

    Attributes:
        name: Its name.
        hint: Its type with all that is annotated.
        about: Its docstring, on one line.
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

    def annotation(self, kind: type[T]) -> T | None:
        """Return the field's annotation of the class ``kind``; None without one."""
        return next((one for one in _annotations(self.hint) if isinstance(one, kind)), None)

    @property
    def is_positional(self) -> bool:
        """True for a positional argument, False for an option."""
        return self.option.positional or self.default is MISSING

    @property
    def option(self) -> Option:
        """The way in which it is typed."""
        return self.annotation(Option) or _PLAIN

    @property
    def input_file(self) -> InputFile | None:
        """What file the field names, where it must exist already; None for fields of other values."""
        return self.annotation(InputFile)

    @property
    def is_assignments(self) -> bool:
        """True for a mapping that is typed as several KEY=VALUE."""
        return "--set" in self.option.names

    @property
    def leaf_types(self) -> list[Any]:
        """Types of a single value, without lists, unions and annotations."""
        return list(dict.fromkeys(_leaf_types(self.hint)))

    @property
    def takes_several(self) -> bool:
        """True if the field's value is a list."""
        return any(_is_sequence(one) for one in _union_members(self.hint))


def _union_members(hint: Any) -> Iterator[Any]:
    """Yield the types in a union type."""
    if get_origin(hint) is Annotated:
        yield from _union_members(get_args(hint)[0])
    elif get_origin(hint) in (Union, UnionType):
        for one in get_args(hint):
            yield from _union_members(one)
    else:
        yield hint


def _is_sequence(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Collection) and not issubclass(origin, Mapping)


def _leaf_types(hint: Any) -> Iterator[Any]:
    """Yield the plain types in a type hint, such as ``int`` in ``list[int] | None``."""
    for one in _union_members(hint):
        if _is_sequence(one):
            yield from _leaf_types(get_args(one)[0])
        elif one is not type(None):
            yield one


def _annotations(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        yield from marks
        yield from _annotations(inner)
    elif get_origin(hint) in (Union, UnionType) or _is_sequence(hint):
        for one in get_args(hint):
            yield from _annotations(one)


def option_names(field: StageField) -> list[str]:
    """Return the names of a field's option, the long name first: ["--output", "-o"]."""
    names = [*field.option.names]
    if not any(name.startswith("--") for name in names):
        names = [f"--{field.name.replace('_', '-')}", *names]
    return names


def fields_of(stage: Any) -> tuple[StageField, ...]:
    """Return the fields of a command's class, its own before inherited ones."""
    return _read_fields(stage)


@cache
def _read_fields(stage: Any) -> tuple[StageField, ...]:
    hints = get_type_hints(stage, include_extras=True)
    own = _declared_fields_of(stage)
    others = {name: one for where in stage.described_by for name, one in read_class_fields(where).items()}
    first = [name for kind in stage.__mro__ for name in getattr(kind, "__annotations__", {})]
    listed = sorted(fields(stage), key=lambda field: first.index(field.name))
    return tuple(
        _make_field(
            field, hints[field.name], own.get(field.name), others.get(field.name), stage.shows_described_defaults
        )
        for field in listed
    )


def _make_field(
    field: "Field[Any]", hint: Any, declared: SourceField | None, described: SourceField | None, shows_defaults: bool
) -> StageField:
    described = None if declared else described
    marks = [*_annotations(hint)]
    words = next((one.default for one in marks if isinstance(one, Option)), "")
    if described and shows_defaults and field.default is None and described.default not in (None, ""):
        words = words or str(described.default)
    limits = next((one for one in marks if isinstance(one, Range)), None)
    limits = limits or (Range(described.least, described.most) if described else Range())
    about = declared.about if declared else described.about if described else ""
    return StageField(field.name, hint, about, field.default, words, limits, described.choices if described else ())


def _declared_fields_of(stage: Any) -> dict[str, SourceField]:
    """Return name and docstring of the fields of a class; those of a subclass override its bases'."""
    found: dict[str, SourceField] = {}
    for kind in reversed([one for one in stage.__mro__ if "__dataclass_fields__" in vars(one)]):
        module = sys.modules[kind.__module__]
        here = read_class_fields_in(Path(str(module.__file__)), kind.__name__)
        found |= {name: one for name, one in here.items() if one.about}
    return found
