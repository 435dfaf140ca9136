"""Fields as options and arguments of a command: those of a stage, and of the settings of a member."""

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from mmgen.cli._completion import members, presets, words
from mmgen.cli._console import CONSOLE, result
from mmgen.cli._options import EarlyCheck, command_line, read_path, read_paths
from mmgen.commands import (
    Assignments,
    Commas,
    Input,
    MemberOf,
    MemberSettings,
    OptionName,
    Reads,
    Source,
    Stage,
    StageField,
    Words,
    fields_of,
    option_names,
)
from mmgen.core.errors import UsageError
from mmgen.core.parsing import listed
from mmgen.settings.registry import registry_of
from mmgen.settings.switches import Positional

__all__ = ["FieldOption", "member_room", "option_of", "options_of_stage", "stage_function"]


@dataclass(frozen=True)
class FieldOption:
    """A field as an option or argument of the command line.

    Attributes:
        name: As it is typed: "--size"; of an argument what help calls it: "PICTURES".
        field: Name of the field.
        parameter: A parameter as typer reads it.
        read: From what typer read to the field's value.
        shown: Whether help shows it.
    """

    name: str
    field: str
    parameter: inspect.Parameter
    read: Callable[[Any], Any]
    shown: bool = True


def stage_function(stage: type[Stage[Any]], present: Callable[..., None] | None) -> Callable[..., None]:
    """Return the function from which typer makes a stage's command."""
    options = options_of_stage(stage)
    present = present or _print_path
    member = next((field for field in fields_of(stage) if field.mark(MemberSettings)), None)

    @functools.wraps(present)
    def run(*names: str, of_member: Mapping[str, tuple[str, Any]] = MappingProxyType({}), **values: Any) -> None:
        values |= {option.parameter.name: name for option, name in zip(options, names, strict=False)}
        typed = {one.field: (one, values.pop(one.parameter.name)) for one in options}
        fields = {name: one.read(value) for name, (one, value) in typed.items() if value is not None and value != []}
        if member is not None:
            fields[member.name] = _merged(of_member, fields.get(member.name, {}))
        present(stage(**fields, progress=CONSOLE), **values)

    _, *further = inspect.signature(present).parameters.values()
    parameters = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*(o.parameter for o in options), *further)
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = "\n\n".join(filter(None, (inspect.getdoc(stage), inspect.getdoc(present))))
    return run


def _merged(of_member: Mapping[str, tuple[str, Any]], assigned: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a member from its own options and from ``--set``."""
    for option, (name, _) in of_member.items():
        if name in assigned:
            raise UsageError(f"{option} and --set {name} give one setting, {name}, two values; give one of them")
    return {**dict(of_member.values()), **assigned}


def member_room(stage: type[Stage[Any]]) -> str:
    """Return the room whose members a stage takes first with their own settings, "" where it takes none."""
    if not any(field.mark(MemberSettings) for field in fields_of(stage)):
        return ""
    return next(room.room for field in fields_of(stage) if (room := field.mark(MemberOf)))


def _print_path(stage: Stage[Any]) -> None:
    made = stage.run(command_line())
    result(getattr(made, "path", made))


def options_of_stage(stage: type[Stage[Any]]) -> list[FieldOption]:
    """Return the options of a stage's fields."""
    return [option_of(field) for field in fields_of(stage) if field.name != "progress"]


def option_of(field: StageField, panel: str | None = None) -> FieldOption:
    """Return a field's option or argument."""
    kind, several = _kind(field), field.several and not field.mark(Commas)
    if field.mark(Assignments):
        kind, several = str, True
    annotation: Any = list[kind] if several else kind  # type: ignore[valid-type]  # read by typer alone
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    name = option_names(field)[0]
    turned_off = default is True and "/" not in name
    if turned_off:
        default = False
    if default in (None, ()) or (several and default is not inspect.Parameter.empty):
        annotation, default = annotation | None, None
    if field.positional:
        info, marks = _argument(field)
        name = info.metavar
    else:
        name = f"--no-{name.removeprefix('--')}" if turned_off else name
        info, marks = _annotated_option(field, kind, name, panel)
    annotated = Annotated[annotation, info, *marks]
    parameter = inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotated)
    return FieldOption(name, field.name, parameter, operator.not_ if turned_off else _reader(field))


def _kind(field: StageField) -> Any:
    """Return the type that typer reads one value as."""
    leaves = field.leaves
    if field.mark(Commas) or field.mark(Assignments):
        return str
    if field.mark(Input):  # may be - for stdin
        return str
    if Path in leaves:
        return str if (reads := field.mark(Reads)) and reads.piped else Path
    return next((kind for kind in (bool, float, int) if leaves == [kind]), str)


def _argument(field: StageField) -> tuple[Any, list[Any]]:
    source, room = field.mark(Input), field.mark(MemberOf)
    if source is None:
        named = field.mark(Positional) or field.mark(OptionName)
        metavar = (named.metavar if named else "") or field.name.upper()
        argument = typer.Argument(
            metavar=metavar, show_default=False, help=field.about, autocompletion=_completion(field)
        )
        return argument, [EarlyCheck(registry_of(room.room).describe)] if room else []
    end = "reads paths from stdin" if field.several else "reads its path from stdin"
    argument = typer.Argument(
        metavar=source.metavar, show_default=False, help=f"{field.about.removesuffix('.')}; '-' {end}."
    )
    return argument, [] if field.several else [EarlyCheck(functools.partial(_look_at, source.what))]


def _look_at(what: str, text: str) -> None:
    if text != "-":
        read_path(text, what)


def _annotated_option(field: StageField, kind: Any, name: str, panel: str | None) -> tuple[Any, list[Any]]:
    """Return an option, and the marks beside it in the annotation."""
    named, reads = field.mark(OptionName) or OptionName(), field.mark(Reads)
    is_number = kind in (int, float)
    option = typer.Option(
        name,
        *option_names(field)[1:],
        rich_help_panel=panel,
        metavar=named.metavar or ("LIST" if field.mark(Commas) else None),
        help=_with_choices(field),
        hidden=named.hidden,
        show_default=field.default_words or field.default not in (None, (), ""),
        autocompletion=_completion(field),
        min=field.range.least if is_number else None,
        max=field.range.most if is_number else None,
    )
    return option, [mark for mark in (field.mark(Source), reads) if mark]


def _with_choices(field: StageField) -> str:
    if all(word in field.about for word in field.choices):
        return field.about
    return f"{field.about.removesuffix('.')} ({', '.join(field.choices[:-1])} or {field.choices[-1]})."


def _completion(field: StageField) -> Any:
    room, some = field.mark(MemberOf), field.mark(Words)
    if room is not None:
        return members(room.room, *room.more)
    if some is not None or field.choices:
        return words(*(some.words if some else field.choices))
    return presets if field.name == "preset" else None


def _reader(field: StageField) -> Callable[[Any], Any]:
    """Return the conversion of typer's value to the field's."""
    source, reads, commas = field.mark(Input), field.mark(Reads), field.mark(Commas)
    if source is not None and field.several:
        return functools.partial(read_paths, what=source.what, folders=source.folders)
    what = source.what if source else reads.what if reads else ""
    if what and field.several:
        return lambda texts: [read_path(str(text), what) for text in texts]
    if what:
        return lambda text: read_path(str(text), what)
    if commas is not None:
        return functools.partial(_split, field, commas.none)
    if field.mark(Assignments):
        return _assigned
    return lambda value: value


def _split(field: StageField, none: str, text: str) -> list[Any]:
    if text == none:
        return []
    if field.leaves != [int]:
        return [part for part in listed(text) if part or not none]
    try:
        return [int(part) for part in listed(text)]
    except ValueError:
        raise UsageError(
            f"{option_names(field)[0]} got '{text}', expected numbers with commas between, for example 0,1,2"
        ) from None


def _assigned(texts: Sequence[str]) -> Any:
    from mmgen.settings.config import parse_assignments

    return parse_assignments(texts)
