"""Options and arguments of a command, built from the fields of a stage or of a member's settings."""

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from mmgen.cli._console import CONSOLE, print_result
from mmgen.cli._options import (
    command_line,
    complete_members,
    complete_presets,
    complete_words,
    read_path,
    read_paths,
)
from mmgen.cli._repeats import Seeds, repeat_stage
from mmgen.commands import Stage, StageField, Training, fields_of, option_names
from mmgen.core.errors import UsageError
from mmgen.core.parsing import split_list
from mmgen.settings.kinds import MemberOf

__all__ = ["FieldOption", "build_field_option", "build_stage_options", "member_package", "stage_function"]


@dataclass(frozen=True)
class FieldOption:
    """Option or argument of the command line that sets a field.

    Attributes:
        name: Name as typed, "--size"; for an argument its placeholder in help, "PICTURES".
        field: Name of the field.
        parameter: Function parameter for typer.
        read: Function from typer's value to the field's.
        is_shown: Whether help shows it.
    """

    name: str
    field: str
    parameter: inspect.Parameter
    read: Callable[[Any], Any]
    is_shown: bool = True


def stage_function(stage: type[Stage[Any]], print_stage: Callable[..., None] | None) -> Callable[..., None]:
    """Return the function from which typer makes a stage's command.

    Args:
        stage: Class of the stage.
        print_stage: Function that runs a stage and prints its result, with further options of the command; None prints
            the path of the result.
    """
    options = build_stage_options(stage)
    print_stage = print_stage or _run_and_print_path

    @functools.wraps(print_stage)
    def run(
        *names: str,
        member_settings: Mapping[str, tuple[str, Any]] = MappingProxyType({}),
        seeds: str | None = None,
        **values: Any,
    ) -> None:
        def read(typed: Mapping[str, Any]) -> Stage[Any]:
            fields = {one.field: one.read(value) for one in options if (value := typed[one.field]) not in (None, [])}
            if member := stage.member_settings:
                fields[member] = _merge_member_settings(member_settings, fields.get(member, {}))
            return stage(**fields, progress=CONSOLE)

        values |= {option.parameter.name: name for option, name in zip(options, names, strict=False)}
        typed = {one.field: values.pop(one.parameter.name) for one in options}
        for one in repeat_stage(stage, typed, read, seeds):
            print_stage(one, **values)

    _, *further = inspect.signature(print_stage).parameters.values()
    if issubclass(stage, Training):
        further.append(inspect.Parameter("seeds", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Seeds))
    parameters = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*(o.parameter for o in options), *further)
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = "\n\n".join(filter(None, (inspect.getdoc(stage), inspect.getdoc(print_stage))))
    return run


def _merge_member_settings(
    member_settings: Mapping[str, tuple[str, Any]], assigned: Mapping[str, Any]
) -> dict[str, Any]:
    """Merge a member's settings from its own options and from ``--set``; refuse a field in both."""
    for option, (name, _) in member_settings.items():
        if name in assigned:
            raise UsageError(f"{option} and --set {name} both set {name}; leave one out")
    return {**dict(member_settings.values()), **assigned}


def member_package(stage: type[Stage[Any]]) -> str:
    """Return the package of the members that a stage's first argument names; "" if it names none."""
    if not stage.member_settings:
        return ""
    return next(mark.room for field in fields_of(stage) if (mark := field.annotation(MemberOf)))


def _run_and_print_path(stage: Stage[Any]) -> None:
    made = stage.run(command_line())
    print_result(getattr(made, "path", made))


def build_stage_options(stage: type[Stage[Any]]) -> list[FieldOption]:
    """Build an option or argument for each field of a stage, except ``progress``."""
    return [build_field_option(field) for field in fields_of(stage) if field.name != "progress"]


def build_field_option(field: StageField, panel: str | None = None) -> FieldOption:
    """Build the option or argument that sets a field."""
    value_type, several = _value_type(field), field.is_assignments or (field.takes_several and not field.option.commas)
    annotation: Any = list[value_type] if several else value_type  # type: ignore[valid-type]  # read by typer alone
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    name = option_names(field)[0]
    is_negated = default is True and "/" not in name
    if is_negated:
        default, name = False, f"--no-{name.removeprefix('--')}"
    if default in (None, ()) or (several and default is not inspect.Parameter.empty):
        annotation, default = annotation | None, None
    info = _build_argument(field) if field.is_positional else _build_option(field, value_type, name, panel)
    parameter = inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info]
    )
    shown = info.metavar if field.is_positional else name
    return FieldOption(shown, field.name, parameter, operator.not_ if is_negated else _value_parser(field))


def _value_type(field: StageField) -> Any:
    """Return the type to which typer converts a value of this field."""
    leaves = field.leaf_types
    if field.option.commas or field.is_assignments or field.input_file:  # a file may be - for stdin
        return str
    if Path in leaves:
        return Path
    return next((kind for kind in (bool, float, int) if leaves == [kind]), str)


def _build_argument(field: StageField) -> Any:
    about, metavar = field.about, field.option.metavar or field.name.upper()
    if field.input_file:
        end = "reads paths from stdin" if field.takes_several else "reads its path from stdin"
        about, metavar = f"{about.removesuffix('.')}; '-' {end}.", field.option.metavar or "FILE"
    completion = _field_completion(field)
    return typer.Argument(metavar=metavar, show_default=False, help=about, autocompletion=completion)


def _build_option(field: StageField, value_type: Any, name: str, panel: str | None) -> Any:
    is_number, typed = value_type in (int, float), field.option
    metavar = typed.metavar or ("LIST" if typed.commas else "FILE" if field.input_file else None)
    return typer.Option(
        name,
        *option_names(field)[1:],
        rich_help_panel=panel,
        metavar=metavar,
        help=_field_help(field),
        show_default=field.default_words or field.default not in (None, (), ""),
        autocompletion=_field_completion(field),
        min=field.range.least if is_number else None,
        max=field.range.most if is_number else None,
    )


def _field_help(field: StageField) -> str:
    if all(word in field.about for word in field.choices):
        return field.about
    return f"{field.about.removesuffix('.')} ({', '.join(field.choices[:-1])} or {field.choices[-1]})."


def _field_completion(field: StageField) -> Any:
    if room := field.annotation(MemberOf):
        return complete_members(room.room, *room.further)
    if words := field.option.words or field.choices:
        return complete_words(*words)
    return complete_presets if field.name == "preset" else None


def _value_parser(field: StageField) -> Callable[[Any], Any]:
    """Return the function that converts the value from typer to the field's value."""
    if source := field.input_file:
        if field.takes_several:
            return functools.partial(read_paths, kind=source.content, folders=source.folders)
        return functools.partial(read_path, kind=source.content)
    if field.option.commas:
        return functools.partial(_split_commas, field)
    return _parse_assignments if field.is_assignments else lambda value: value


def _split_commas(field: StageField, text: str) -> list[Any]:
    nothing = field.option.nothing
    if text == nothing:
        return []
    parts = split_list(text)
    if field.leaf_types != [int]:
        return [part for part in parts if part or not nothing]
    try:
        return [int(part) for part in parts]
    except ValueError:
        raise UsageError(
            f"{option_names(field)[0]} got '{text}', expected numbers with commas between, for example 0,1,2"
        ) from None


def _parse_assignments(texts: Sequence[str]) -> Any:
    from mmgen.settings.config import parse_assignments

    return parse_assignments(texts)
