"""Commands whose first argument names a member of a room and that have its options: ``mmgen make-data RECIPE ...``.

The options come from the member's settings: names, types, ranges, defaults and docstrings of its fields.
"""

import functools
import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from mmgen.cli._commands import build_command, escape_markup, hide_switch_types
from mmgen.cli._parameters import FieldOption, build_field_option, build_stage_options, stage_function
from mmgen.cli._typer import has_arguments
from mmgen.commands import Stage, StageField
from mmgen.core.errors import MmgenError, UsageError
from mmgen.settings.kinds import Option, Range
from mmgen.settings.registry import BUILT_IN, Registry, add_code, registry_of

if TYPE_CHECKING:
    from mmgen.settings.settings_table import Setting


class MemberCommands(TyperGroup):
    """Command whose first argument names a member, and whose further options are that member's settings.

    Args:
        name: Name of the command.
        function: Function to call with the member's name, the shared options, and ``member_settings``, a dictionary
            from each typed option of the member to field and value.
        package: Package of the members: "mmgen.data_recipes".
    """

    def __init__(self, name: str, function: Callable[..., None], package: str) -> None:
        self._function = function
        self.registry: Registry[Any] = registry_of(package)
        plain = build_command(name, _hide_member_argument(function, self.registry.noun))
        noun = self.registry.noun
        super().__init__(
            name=name,
            params=plain.params,
            help=plain.help,
            rich_markup_mode="rich",
            options_metavar=noun.upper(),
            subcommand_metavar="[OPTIONS]",
            epilog=f"mmgen {name} {noun.upper()} --help shows the options of that {noun}.",
        )

    def get_params(self, ctx: Any) -> list[Any]:
        return hide_switch_types(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return self.registry.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command without options for the member, for overview and completion; import nothing."""
        member = next((one for one in self.registry.members() if one.name == cmd_name), None)
        panel = f"{self.registry.noun.capitalize()}s"
        return member and escape_markup(TyperCommand(cmd_name, help=f"{member.about()}.", rich_help_panel=panel))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if not (rest or has_arguments(ctx)) and not ctx.resilient_parsing:  # options without a member
            ctx.fail(f"Missing argument '{self.registry.noun.upper()}'.")
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing:
            own = (
                f"; your own pictures: mmgen make-data folder {shlex.quote(args[0])}" if Path(args[0]).exists() else ""
            )
            raise UsageError(self.registry.format_unknown(args[0]) + own)
        return super().resolve_command(ctx, args)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        completing = bool(extra.get("resilient_parsing"))
        _load_code_files(args, completing)
        names = self.registry.names()
        # A name may also be the value of an option: --source mnist. Names behind an option are tried last.
        places = sorted((before.startswith("-"), at) for at, before in enumerate(["", *args][: len(args)]))
        members = list(dict.fromkeys(args[at] for _, at in places if args[at] in names))
        if not members:
            return super().make_context(info_name, args, parent, **extra)
        for name in members[:-1]:
            try:
                context = self.build_member_command(name).make_context(
                    f"{info_name} {name}", list(args), parent, **extra
                )
            except (typer.TyperException, MmgenError):
                continue
            if context.params.get("member") == name:
                return context
        return self.build_member_command(members[-1]).make_context(
            f"{info_name} {members[-1]}", list(args), parent, **extra
        )

    def build_member_command(self, name: str) -> Any:
        """Build the command of a member, with options for the member's settings."""
        noun = self.registry.noun
        options = build_options(self.registry.get(name), name, _option_names(self.params))
        shared = [one for one in _signature_parameters(self._function) if one.name != noun]

        @functools.wraps(self._function)
        def run(member: str, **values: Any) -> None:
            self._function(member, **values)

        argument = Annotated[str, typer.Argument(metavar=name, show_default=False, hidden=True)]
        first = inspect.Parameter("member", inspect.Parameter.KEYWORD_ONLY, annotation=argument)
        command = build_command(str(self.name), add_options(run, options, [first], shared))
        command.help = f"{self.help}\n\n{self.registry.describe(name)}."
        return escape_markup(command)


def add_options(
    function: Callable[..., None],
    options: Sequence[FieldOption],
    before: Sequence[inspect.Parameter],
    after: Sequence[inspect.Parameter] = (),
) -> Callable[..., None]:
    """Return a function with an option for each setting of a class between its own parameters.

    It calls ``function`` with ``member_settings``, a dictionary from each typed option to field and value.
    """

    @functools.wraps(function)
    def run(**values: Any) -> None:
        typed = [(option, values.pop(option.parameter.name)) for option in options]
        settings = {
            option.name: (option.field, option.read(value))
            for option, value in typed
            if value is not None and value is not False
        }
        _check_single_switch(settings)
        function(member_settings=settings, **values)

    listed = (*before, *(option.parameter for option in options), *after)
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in listed]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def stage_with_settings(
    stage: type[Stage[Any]], print_stage: Callable[..., None], schema: Any, panel: str
) -> Callable[..., None]:
    """Return the function of a stage's command with an option for each setting of a class that it has none for.

    Arguments of the class are left out: the stage names what they stand for.
    """
    function = stage_function(stage, print_stage)
    reserved = {one.name for one in build_stage_options(stage)}
    options = [one for one in build_options(schema, panel, frozenset(reserved)) if one.name.startswith("--")]
    return add_options(function, options, _signature_parameters(function))


def all_parameters(command: Any) -> list[Any]:
    """Return all parameters of a command, those of its built-in members included."""
    if not isinstance(command, MemberCommands):
        return list(command.params)
    names = [member.name for member in command.registry.members() if member.origin == BUILT_IN]
    return [*command.params, *(one for name in names for one in command.build_member_command(name).params)]


def _hide_member_argument(function: Callable[..., None], noun: str) -> Callable[..., None]:
    """Return a function without the argument ``noun``, from which typer builds the options shared by all members."""

    def run(**values: Any) -> None:
        raise AssertionError("this command needs the name of a member; see its --help")

    parameters = [one for one in _signature_parameters(function) if one.name != noun]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what typer reads
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    )
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = function.__doc__
    return run


def _signature_parameters(function: Callable[..., None]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _load_code_files(args: Sequence[str], completing: bool) -> None:
    """Run the files of ``--code``, so that their members can be named in the same command line."""
    for word, next_word in pairwise([*args, ""]):
        path = word.removeprefix("--code=") if word.startswith("--code=") else next_word if word == "--code" else ""
        if not path:
            continue
        try:
            add_code(Path(path))
        except MmgenError:
            if not completing:
                raise


def _check_single_switch(typed: Mapping[str, tuple[str, Any]]) -> None:
    """Refuse two options that set the same field."""
    fields: dict[str, str] = {}
    for option, (field, _) in typed.items():
        if field in fields:
            raise UsageError(f"{fields[field]} and {option} both set {field}; leave one out")
        fields[field] = option


def _option_names(parameters: Sequence[Any]) -> frozenset[str]:
    """Return the option names of typer's parameters."""
    return frozenset(name for one in parameters for name in (*one.opts, *one.secondary_opts))


def build_options(schema: Any, panel: str, reserved: frozenset[str] = frozenset()) -> list[FieldOption]:
    """Build an option for each field of a settings class, except options with ``reserved`` names."""
    from mmgen.settings.settings_table import list_settings

    settings = {one.name: one for one in list_settings(schema)}
    options: list[FieldOption] = []
    for name, field in schema.model_fields.items():
        if name not in settings:
            continue
        typed = next((one for one in field.metadata if isinstance(one, Option)), Option())
        if typed.switches:
            options += _build_switches(name, field, typed, panel)
        else:
            options.append(_build_option(name, field, typed, settings[name], panel))
    return [one for one in options if one.name not in reserved]


def _build_option(name: str, field: Any, typed: Option, setting: "Setting", panel: str) -> FieldOption:
    """Build the option of a field; a value that is no number, word or list is parsed as in ``--set``."""
    stage_field = StageField(name, field.annotation, setting.about, None, setting.default, Range())
    values = {type(value) for leaf in stage_field.leaf_types if get_origin(leaf) is Literal for value in get_args(leaf)}
    bounds = setting.kind.removesuffix(" or none")
    parse: Callable[[Any], Any] | None = None
    if typed.positional:
        default = MISSING if field.is_required() else None
        stage_field = replace(stage_field, hint=Annotated[field.annotation, typed], default=default)
    elif stage_field.leaf_types == [bool]:
        stage_field = replace(stage_field, default=field.default, default_words="")
    elif stage_field.takes_several:
        words = ",".join(map(str, field.default)) if isinstance(field.default, tuple | list) else setting.default
        stage_field = replace(stage_field, hint=Annotated[field.annotation, Option(commas=True)], default_words=words)
    elif len(values) == 1 and len(stage_field.leaf_types) == 1:
        stage_field = replace(
            stage_field, hint=values.pop(), about=f"{stage_field.about.removesuffix('.')} ({bounds})."
        )
    elif stage_field.leaf_types not in ([int], [float], [str], [Path]):
        stage_field = replace(stage_field, hint=Annotated[field.annotation, Option(metavar="VALUE")])
        parse = functools.partial(_parse_like_set, name)
    elif stage_field.leaf_types in ([int], [float]) and "," in bounds:
        stage_field = replace(
            stage_field, about=f"{stage_field.about.removesuffix('.')} ({bounds.partition(', ')[2]})."
        )
    option = build_field_option(stage_field, panel)
    return replace(option, parameter=option.parameter.replace(name=f"own_{name}"), read=parse or option.read)


def _build_switches(name: str, field: Any, typed: Option, panel: str) -> Iterator[FieldOption]:
    """Build the options without a value, each of which sets a field to one of its values."""
    from pydantic import TypeAdapter, ValidationError

    for number, (switch, (value, help_text)) in enumerate(typed.switches.items()):
        is_allowed = True
        try:
            TypeAdapter(field.annotation).validate_python(value, strict=True)
        except ValidationError:
            is_allowed = False
        about = f"{help_text} The default." if field.default == value else help_text
        option = typer.Option(switch, help=about, rich_help_panel=panel, hidden=not is_allowed)
        parameter = inspect.Parameter(
            f"own_{name}_{number}", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option]
        )
        yield FieldOption(switch, name, parameter, functools.partial(_value_of_switch, value), is_allowed)


def _value_of_switch(value: Any, _: bool) -> Any:
    """Return the value that a switch sets, whatever typer read."""
    return value


def _parse_like_set(name: str, text: str) -> Any:
    """Parse an option's text as ``--set NAME=TEXT`` does."""
    from mmgen.settings.config import parse_assignments

    return parse_assignments([f"{name}={text}"])[name]
