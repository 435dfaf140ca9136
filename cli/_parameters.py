"""Options and arguments of a command, built from the fields of a stage or of a member's settings; runs of it."""

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
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
    read_input_paths,
    read_path,
    read_paths,
    typed_arguments,
    use_arguments,
)
from mmgen.commands import Stage, StageField, Training, fields_of, option_names
from mmgen.core.errors import UsageError
from mmgen.core.parsing import split_list
from mmgen.settings.kinds import MemberOf


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
        **values: Any,
    ) -> None:
        seeds = values.pop("seeds", None) if issubclass(stage, Training) else None

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
    run.first_options = stage.first_options  # type: ignore[attr-defined]  # what build_command reads
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
    """Build an option or argument for each field of a stage, except ``progress`` and settings that are not typed."""
    fields = [one for one in fields_of(stage) if one.name != stage.member_settings or one.is_assignments]
    return [build_field_option(field) for field in fields if field.name != "progress"]


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


Seeds = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="N|LIST",
        show_default=False,
        help="Train once for each of the seeds 0 to N - 1, or of these: 0,1,7. The seed is added to each file's name.",
    ),
]
"""Option of the commands that train."""


def repeat_stage(
    stage: type[Stage[Any]],
    values: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], Stage[Any]],
    seeds: str | None,
) -> Iterator[Stage[Any]]:
    """Yield the runs of a command one by one, each with its words as the command line to be recorded.

    Args:
        stage: Class of the command.
        values: Typed values of its fields.
        read: Function that makes the stage from typed values.
        seeds: Value of ``--seeds``.

    Raises:
        UsageError: Options are not for several runs; before the first run.
    """
    words = typed_arguments()
    inputs = [field for field in fields_of(stage) if field.is_positional and field.input_file]
    source = next((field for field in inputs if not field.takes_several), None)
    paths = _piped_paths(source, values)
    if not paths and seeds is None:
        yield read(values)
        return
    output = next((field for field in fields_of(stage) if field.name == "output"), None)
    if len(paths) > 1 and output is not None and values.get("output") is not None:
        advice = "" if output.default is MISSING else "leave it out, so that files are named after their inputs, or "
        raise UsageError(
            f"--output got {values['output']}, but - reads {len(paths)} paths; {advice}run the command once for each"
        )
    runs: list[tuple[Stage[Any], list[str]]] = []
    for path in paths or [""]:
        here = {**values, source.name: path} if path and source is not None else values
        typed = [path if path and word == "-" else word for word in words]
        runs += _seeded_runs(read(here), typed, seeds)
    for one, typed in runs:
        with use_arguments(typed):
            yield one


def _piped_paths(source: StageField | None, values: Mapping[str, Any]) -> list[str]:
    """Return the paths on stdin if they take the place of the input ``source``; [] if they do not."""
    if source is None or values.get(source.name) != "-":
        return []
    mark = source.input_file
    assert mark is not None
    return read_input_paths(mark.content)


def parse_seed_option(text: str) -> tuple[int, ...]:
    """Return the seeds in the value of ``--seeds``: the first N, or a list."""
    from mmgen.experiments import parse_seeds

    try:
        seeds: tuple[int, ...] = parse_seeds(text)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    return seeds


def _seeded_runs(stage: Any, words: Sequence[str], seeds: str | None) -> list[tuple[Stage[Any], list[str]]]:
    """Return a stage for each seed with the words of its command line."""
    if seeds is None:
        return [(stage, [*words])]
    from mmgen.experiments import seed_file_name

    numbers = parse_seed_option(seeds)
    _check_options(stage, words)
    made = replace(stage, progress=False).output_path
    options = {field.name: option_names(field) for field in fields_of(type(stage))}
    others = _without_options(words, ("--seeds", *options["output"]))
    runs: list[tuple[Stage[Any], list[str]]] = []
    for number in numbers:
        path = Path(seed_file_name(str(made), number))
        added = ["--seed", str(number), "-o", str(path)]
        runs.append((replace(stage, seed=number, output=path), [*others, *added]))
    return runs


def _check_options(stage: Any, words: Sequence[str]) -> None:
    """Refuse options that contradict several seeds."""
    if any(word == "--seed" or word.startswith("--seed=") for word in words):
        raise UsageError("--seed and --seeds are given together, expected one of them; leave one out")
    if str(stage.output).startswith("-"):
        raise UsageError(
            f"--output got {stage.output}, but the files of --seeds would be called like options; choose another name"
        )
    if (getattr(stage, "devices", None) or 1) > 1:
        raise UsageError(
            "--seeds trains one seed after the other in this process, and --devices starts further ones; give the "
            "command once for each --seed"
        )


def _without_options(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the words of a command line without these options and their values."""
    others: list[str] = []
    remaining = iter(words)
    for word in remaining:
        short = next((name for name in names if not name.startswith("--") and word.startswith(name)), None)
        if word in names:
            next(remaining, None)
        elif word.partition("=")[0] not in names and short is None:
            others.append(word)
    return others
