"""Commands of the program, built from functions with annotated parameters."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

from mmgen.cli._mistakes import suggest_command, suggest_option, suggest_quotes
from mmgen.cli._options import LARGEST_SEED, Code, EarlyCheck, check_input_exists, check_source_exists
from mmgen.commands import ExistingFile, PictureSource
from mmgen.core.errors import UsageError
from mmgen.settings.registry import insert_member_names

__all__ = ["Command", "build_command", "escape_markup", "hide_switch_types"]

T = TypeVar("T")

_METAVARS = {"bool": "", "int": "N", "float": "NUMBER", "str": "NAME", "Path": "PATH"}
"""Placeholders of values in help, by type, for options without one of their own; a switch has none."""

_DESCRIPTION = "WORDS"
"""Placeholder of a description in help; its value may be empty, which leaves every attribute open."""


class Command(TyperCommand):
    """Command that refuses an empty argument, as ``-o "$OUT"`` gives if the variable is unset.

    If an argument is missing, the others are checked first (:class:`EarlyCheck`).
    """

    early_checks: Mapping[str, EarlyCheck] = MappingProxyType({})

    def get_params(self, ctx: Any) -> list[Any]:
        return hide_switch_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        parameters: list[Any] = self.params
        arguments = [one for one in parameters if one.param_type_name == "argument" and not one.hidden]
        return ["[OPTIONS]", *(one.metavar if one.required else f"[{one.metavar}]" for one in arguments)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # completion asks with words that are not typed yet
            return super().parse_args(ctx, args)
        self._check_no_empty_argument(str(ctx.command_path), args)
        self._check_single_values(args)
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            if ctx.parent is None:  # a command of an experiment file, whose input files do not exist yet
                raise
            arguments = [one for one in self.params if one.param_type_name == "argument"]
            missing = getattr(error, "param", None)
            for parameter, word in zip(arguments, typed, strict=False):
                if missing not in arguments or word.startswith("-"):
                    break
                if parameter.name in self.early_checks:
                    self.early_checks[parameter.name].check(word)
            if isinstance(option := getattr(error, "option_name", None), str):
                known = {name for one in self.params for name in one.opts}
                if suggestion := suggest_option(ctx.command_path.split()[1], option, known):
                    ctx.fail(suggestion)
            suggestion = suggest_command(str(self.name), typed, str(missing.metavar) if missing in arguments else "")
            suggestion = suggestion or (
                suggest_quotes(typed) if "extra argument" in str(error) and self._has_option("--given") else ""
            )
            if suggestion:
                ctx.fail(suggestion)
            raise

    def _has_option(self, option: str) -> bool:
        return any(option in one.opts for one in self.params)

    def _check_no_empty_argument(self, command_path: str, args: list[str]) -> None:
        options = {name: one for one in self.params for name in one.opts if not getattr(one, "is_flag", True)}
        for previous, word in zip(["", *args], args, strict=False):
            name, equals, value = word.partition("=")
            if word and (value or not equals or name not in options):
                continue
            option = name if word else previous if previous in options else ""
            if not option:
                raise UsageError(
                    f"{command_path.removeprefix('mmgen ')} got an empty argument, as from an unset variable; set the "
                    "variable, or leave the argument out"
                )
            if options[option].metavar != _DESCRIPTION:
                raise UsageError(
                    f"{option} got an empty value, expected {options[option].metavar}; give one, or leave the option "
                    "out"
                )

    def _check_single_values(self, args: list[str]) -> None:
        """Refuse two values for an option that takes one; the parser would silently use the last."""
        options = {name: one for one in self.params for name in one.opts if not getattr(one, "is_flag", True)}
        values: dict[Any, str] = {}
        words = iter(args)
        for word in words:
            if word == "--":
                return
            name, equals, value = word.partition("=")
            if not word.startswith("--") and word[:2] in options:
                name, equals, value = word[:2], word[2:], word[2:]
            if name not in options:
                continue
            value = value if equals else next(words, "")
            option = options[name]
            if not option.multiple and values.setdefault(option.name, value) != value:
                raise UsageError(
                    f"{name} got {values[option.name]} and {value}, expected one {option.metavar}; leave one out"
                )


def build_command(name: str, function: Callable[..., Any], command_class: type[Command] = Command) -> Any:
    """Build the command ``name`` that calls ``function``, with an option for each of its parameters and ``--code``."""
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name=name, cls=command_class)(_add_code_option(function))
    loaded: Any = typer.main.get_command(single)
    loaded.early_checks = _annotation_marks(function, EarlyCheck)
    parameters: list[Any] = loaded.params
    for parameter in parameters:
        if getattr(parameter, "help", None):
            parameter.help = insert_member_names(parameter.help)
        if parameter.metavar is None:
            parameter.metavar = _METAVARS[parameter.bare_type().removeprefix("list[").removesuffix("]")]
    return loaded


def _add_code_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command's function: add the option ``--code``, and check that input files exist before the call."""
    files, sources = _annotation_marks(function, ExistingFile), _annotation_marks(function, PictureSource)

    @functools.wraps(function)
    def command(*, code: list[Path] | None = None, **options: Any) -> Any:
        if code:
            from mmgen.settings.registry import add_code

            for path in code:
                add_code(path)
        for name, reads in files.items():
            check_input_exists(reads, options[name])
        for name in sources:
            check_source_exists(options[name])
        return function(**options)

    signature = inspect.signature(function)
    shared = inspect.Parameter("code", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Code)
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]  # what typer reads
        parameters=[*signature.parameters.values(), shared]
    )
    command.__annotations__ = {**function.__annotations__, "code": Code}
    return command


def _annotation_marks(function: Callable[..., Any], mark_class: type[T]) -> dict[str, T]:
    """Return the instances of ``mark_class`` in the annotations of a function's parameters, by parameter name."""
    return {
        name: mark
        for name, hint in get_type_hints(function, include_extras=True).items()
        for mark in getattr(hint, "__metadata__", ())
        if isinstance(mark, mark_class)
    }


def escape_markup(command: Any) -> Any:
    """Escape square brackets in a command's help, which Rich would read as markup; return the command."""
    from rich.markup import escape

    for holder in (command, *command.params):
        for name in ("help", "short_help", "rich_help_panel"):
            text = getattr(holder, name, None)
            if isinstance(text, str):
                setattr(holder, name, escape(_join_paragraph_lines(text)))
    for parameter in command.params:
        _simplify_parameter_help(parameter)
    return command


def _join_paragraph_lines(text: str) -> str:
    """Replace line breaks within paragraphs by spaces; paragraphs stay apart."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _simplify_parameter_help(parameter: Any) -> None:
    """Show a parameter's default in help exactly as its option states it, and hide the largest 64-bit seed."""
    if isinstance(parameter.show_default, str):
        parameter._get_default_string = lambda **_: parameter.show_default
    if parameter.param_type_name == "argument":
        parameter.display_type_rich = lambda **_: None  # its name explains it
    if str(LARGEST_SEED) in str(parameter._get_number_range_help_str()):
        parameter._get_number_range_help_str = lambda: None


def hide_switch_types(parameters: Sequence[Any]) -> list[Any]:
    """Remove the type that help shows beside options without a value, and return all parameters."""
    for parameter in parameters:
        if parameter.metavar is None and getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return list(parameters)
