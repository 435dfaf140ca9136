"""Commands whose first argument is a member of a room, with options of that member: ``mmgen make-data RECIPE ...``.

The options are made from the member's settings: names, types, ranges, defaults and docstrings of its fields.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from mmgen.cli._commands import Command, command_of, literal, without_types
from mmgen.cli._mistakes import suggest_recipe
from mmgen.cli._parameters import FieldOption, option_of
from mmgen.commands import Commas, OptionName, StageField
from mmgen.core.errors import MmgenError, UsageError
from mmgen.settings.kinds import Range
from mmgen.settings.registry import BUILT_IN, Registry, add_code, registry_of
from mmgen.settings.switches import Positional, Switches

if TYPE_CHECKING:
    from mmgen.settings.settings_table import Setting

__all__ = ["MemberCommands", "options_of", "parameters_of"]


class MemberCommands(TyperGroup):
    """The command before its member is known: it becomes the named member's own command.

    Args:
        name: Name of the command.
        function: Takes the member's name, its own options, and ``of_member``: the member's settings that were typed,
            a dictionary from the option's name to field and value.
        package: The room: "mmgen.data_recipes".
    """

    def __init__(self, name: str, function: Callable[..., None], package: str) -> None:
        self._function = function
        self.registry: Registry[Any] = registry_of(package)
        plain = command_of(name, _without(function, self.registry.noun))
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
        return without_types(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return self.registry.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a member as the overview and completion show it: name and first sentence, without importing it."""
        member = next((one for one in self.registry.members() if one.name == cmd_name), None)
        panel = f"{self.registry.noun.capitalize()}s"
        return member and literal(TyperCommand(cmd_name, help=f"{member.about()}.", rich_help_panel=panel))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if not (rest or ctx._protected_args) and not ctx.resilient_parsing:  # options alone name nothing either
            ctx.fail(f"Missing argument '{self.registry.noun.upper()}'.")
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing:
            if self.registry.noun == "recipe" and (meant := suggest_recipe(args[0])):
                raise UsageError(meant)
            raise UsageError(self.registry.format_unknown(args[0]))
        return super().resolve_command(ctx, args)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        completing = bool(extra.get("resilient_parsing"))
        _run_code(args, completing)
        names = self.registry.names()
        # A name may also be the value of an option: --source mnist. Those behind an option are tried last.
        places = sorted((before.startswith("-"), at) for at, before in enumerate(["", *args][: len(args)]))
        named = list(dict.fromkeys(args[at] for _, at in places if args[at] in names))
        if not named:
            return super().make_context(info_name, args, parent, **extra)
        for name in named[:-1]:
            try:
                context = self.command_of(name).make_context(f"{info_name} {name}", list(args), parent, **extra)
            except (typer.TyperException, MmgenError):
                continue
            if context.params.get("member") == name:
                return context
        return self.command_of(named[-1]).make_context(f"{info_name} {named[-1]}", list(args), parent, **extra)

    def command_of(self, name: str) -> Any:
        """Return the command of one member, with its own options."""
        noun = self.registry.noun
        options = options_of(self.registry.get(name), name, _option_names(self.params))
        own = [option.parameter for option in options]
        shared = [one for one in _parameters(self._function) if one.name != noun]

        @functools.wraps(self._function)
        def run(member: str, **values: Any) -> None:
            typed = {option.name: values.pop(option.parameter.name) for option in options}
            given = {
                option.name: (option.field, option.read(typed[option.name]))
                for option in options
                if typed[option.name] is not None and typed[option.name] is not False
            }
            _check_once(given)
            self._function(member, of_member=given, **values)

        argument = Annotated[str, typer.Argument(metavar=name, show_default=False, hidden=True)]
        first = inspect.Parameter("member", inspect.Parameter.KEYWORD_ONLY, annotation=argument)
        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (first, *own, *shared)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        command: MemberCommand = command_of(str(self.name), run, MemberCommand)
        command.member, command.registry = name, self.registry
        command.help = f"{self.help}\n\n{self.registry.describe(name)}."
        return literal(command)


class MemberCommand(Command):
    """The command of one member; an option that only others have is refused with their names."""

    member: str
    registry: Registry[Any]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # The member's name, the first argument, is part of the command's.
        return ["[OPTIONS]", *(str(one.metavar) for one in self.params[1:] if one.param_type_name == "argument")]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            option = getattr(error, "option_name", None)
            if not isinstance(option, str) or option in _option_names(self.params):
                raise
            takers = _takers(self.registry, option)
            if not takers:
                raise
            raise UsageError(f"{self.member} has no {option}, which is for {', '.join(takers)}; leave it out") from None


def parameters_of(command: Any) -> list[Any]:
    """Return all parameters of a command; for one that takes a member first, those of all built-in members too."""
    if not isinstance(command, MemberCommands):
        return list(command.params)
    names = [member.name for member in command.registry.members() if member.origin == BUILT_IN]
    return [*command.params, *(one for name in names for one in command.command_of(name).params)]


def _without(function: Callable[..., None], member: str) -> Callable[..., None]:
    """Return the function with only the options that all members share."""

    def run(**values: Any) -> None:
        raise AssertionError("this command needs the name of a member; see its --help")

    parameters = [one for one in _parameters(function) if one.name != member]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what typer reads
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    )
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = function.__doc__
    return run


def _parameters(function: Callable[..., None]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _run_code(args: Sequence[str], completing: bool) -> None:
    """Run the files of ``--code``, whose members can be named in the same line."""
    for word, after in pairwise([*args, ""]):
        path = word.removeprefix("--code=") if word.startswith("--code=") else after if word == "--code" else ""
        if not path:
            continue
        try:
            add_code(Path(path))
        except MmgenError:
            if not completing:
                raise


def _check_once(given: Mapping[str, tuple[str, Any]]) -> None:
    """Refuse two switches of one field."""
    fields: dict[str, str] = {}
    for option, (field, _) in given.items():
        if field in fields:
            raise UsageError(f"{fields[field]} and {option} give one setting, {field}, two values; give one of them")
        fields[field] = option


def _option_names(parameters: Sequence[Any]) -> frozenset[str]:
    """Return the names that can be typed for some of typer's parameters."""
    return frozenset(name for one in parameters for name in (*one.opts, *one.secondary_opts))


def _takers(registry: Registry[Any], option: str) -> list[str]:
    """Return the members that have an option called so."""
    found = {name: options_of(member, name) for name, member in registry.importable().items()}
    return [name for name, options in found.items() if any(one.name == option and one.shown for one in options)]


def options_of(schema: Any, panel: str, taken: frozenset[str] = frozenset()) -> list[FieldOption]:
    """Return the options of a settings model, in the order of its fields."""
    from mmgen.settings.settings_table import settings_of

    described = {one.name: one for one in settings_of(schema)}
    found: list[FieldOption] = []
    for name, field in schema.model_fields.items():
        if name not in described:
            continue
        switches = next((one for one in field.metadata if isinstance(one, Switches)), None)
        if switches is not None:
            found += _switches(name, field, switches, panel)
        else:
            found.append(_option(name, field, described[name], panel))
    return [one for one in found if one.name not in taken]


def _option(name: str, field: Any, described: "Setting", panel: str) -> FieldOption:
    """Read numbers, paths, words and switches as they are, lists with commas between, the rest as in ``--set``."""
    place = next((one for one in field.metadata if isinstance(one, Positional)), None)
    own = StageField(name, field.annotation, described.about, None, described.default, Range())
    values = {type(value) for leaf in own.leaves if get_origin(leaf) is Literal for value in get_args(leaf)}
    bounds = described.kind.removesuffix(" or none")
    read: Callable[[Any], Any] | None = None
    if place is not None:
        default = MISSING if field.is_required() else None
        own = replace(own, hint=Annotated[field.annotation, place], default=default)
    elif own.leaves == [bool]:
        own = replace(own, default=field.default, default_words="")
    elif own.several:
        words = ",".join(map(str, field.default)) if isinstance(field.default, tuple | list) else described.default
        own = replace(own, hint=Annotated[field.annotation, Commas()], default_words=words)
    elif len(values) == 1 and len(own.leaves) == 1:
        own = replace(own, hint=values.pop(), about=f"{own.about.removesuffix('.')} ({bounds}).")
    elif own.leaves not in ([int], [float], [str], [Path]):
        own = replace(own, hint=Annotated[field.annotation, OptionName(metavar="VALUE")])
        read = functools.partial(_as_set, name)
    elif own.leaves in ([int], [float]) and "," in bounds:
        own = replace(own, about=f"{own.about.removesuffix('.')} ({bounds.partition(', ')[2]}).")
    option = option_of(own, panel)
    return replace(option, parameter=option.parameter.replace(name=f"own_{name}"), read=read or option.read)


def _switches(name: str, field: Any, switches: "Switches", panel: str) -> Iterator[FieldOption]:
    from pydantic import TypeAdapter, ValidationError

    for number, switch in enumerate(switches.members):
        shown = True
        try:
            TypeAdapter(field.annotation).validate_python(switch.value, strict=True)
        except ValidationError:
            shown = False
        about = f"{switch.about} The default." if field.default == switch.value else switch.about
        option = typer.Option(switch.name, help=about, rich_help_panel=panel, hidden=not shown)
        parameter = inspect.Parameter(
            f"own_{name}_{number}", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option]
        )
        yield FieldOption(switch.name, name, parameter, functools.partial(_stands_for, switch.value), shown)


def _stands_for(value: Any, _: bool) -> Any:
    return value


def _as_set(name: str, text: str) -> Any:
    from mmgen.settings.config import parse_assignments

    return parse_assignments([f"{name}={text}"])[name]
