"""Commands of the program, built from functions with annotated parameters."""

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from mmgen.cli._options import Code
from mmgen.cli._typer import simplify_parameter_help, type_of
from mmgen.core.errors import UsageError
from mmgen.settings.registry import add_code, insert_member_names

_METAVARS = {"bool": "", "int": "N", "float": "NUMBER", "str": "NAME", "Path": "PATH"}
"""Placeholders of values in help, by type, for options without one of their own; a switch has none."""

_DESCRIPTION = "WORDS"
"""Placeholder of a description in help; its value may be empty, which leaves every attribute open."""


class Command(TyperCommand):
    """Command that refuses an empty word, as an unset variable gives in ``-o "$OUT"``, and an option given twice."""

    def get_params(self, ctx: Any) -> list[Any]:
        return hide_switch_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        parameters: list[Any] = self.params
        arguments = [one for one in parameters if one.param_type_name == "argument" and not one.hidden]
        return ["[OPTIONS]", *(one.metavar if one.required else f"[{one.metavar}]" for one in arguments)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:  # completion asks with words that are not typed yet
            values, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for parameter in order:
                self._check_words(parameter, values[parameter.name], order.count(parameter))
        return super().parse_args(ctx, args)

    @staticmethod
    def _check_words(parameter: Any, value: Any, count: int) -> None:
        name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar
        if "" in (value if isinstance(value, list | tuple) else [value]) and parameter.metavar != _DESCRIPTION:
            raise UsageError(f"{name} got an empty value, as from an unset variable; give one, or leave it out")
        if count > 1 and parameter.param_type_name == "option" and not parameter.multiple and not parameter.is_flag:
            raise UsageError(f"{name} is given {count} times, expected once; leave one out")


def build_command(name: str, function: Callable[..., Any]) -> Any:
    """Build the command ``name`` that calls ``function``, with an option for each of its parameters and ``--code``."""
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name=name, cls=Command)(_add_code_option(function))
    loaded: Any = typer.main.get_command(single)
    parameters: list[Any] = loaded.params
    first = getattr(function, "first_options", ())
    for parameter in parameters:
        if first and parameter.param_type_name == "option" and parameter.name not in first:
            parameter.rich_help_panel = "More"
        if getattr(parameter, "help", None):
            parameter.help = insert_member_names(parameter.help)
        if parameter.metavar is None:
            parameter.metavar = _METAVARS[type_of(parameter)]
    return loaded


def _add_code_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command's function: add the option ``--code``."""

    @functools.wraps(function)
    def command(*, code: list[Path] | None = None, **options: Any) -> Any:
        if code:
            for path in code:
                add_code(path)
        return function(**options)

    signature = inspect.signature(function)
    shared = inspect.Parameter("code", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Code)
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]  # what typer reads
        parameters=[*signature.parameters.values(), shared]
    )
    command.__annotations__ = {**function.__annotations__, "code": Code}
    return command


def escape_markup(command: Any) -> Any:
    """Escape square brackets in a command's help, which Rich would read as markup; return the command."""
    from rich.markup import escape

    for holder in (command, *command.params):
        for name in ("help", "short_help", "rich_help_panel"):
            text = getattr(holder, name, None)
            if isinstance(text, str):
                setattr(holder, name, escape(_join_paragraph_lines(text)))
    for parameter in command.params:
        simplify_parameter_help(parameter)
    return command


def _join_paragraph_lines(text: str) -> str:
    """Replace line breaks within paragraphs by spaces; paragraphs stay apart."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def hide_switch_types(parameters: Sequence[Any]) -> list[Any]:
    """Remove the type that help shows beside options without a value, and return all parameters."""
    for parameter in parameters:
        if parameter.metavar is None and getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return list(parameters)
