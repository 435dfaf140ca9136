"""A function with annotated parameters as a runnable command."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

from mmgen.cli._mistakes import suggest_command, suggest_quotes
from mmgen.cli._options import LARGEST_SEED, Code, EarlyCheck, check_read, check_source
from mmgen.commands import Reads, Source
from mmgen.core.errors import UsageError
from mmgen.settings.registry import insert_member_names

__all__ = ["Command", "command_of", "literal", "without_types"]

T = TypeVar("T")

_METAVARS = {"bool": "", "int": "N", "float": "NUMBER", "str": "NAME", "Path": "PATH"}
"""Names of values in help, for options without one of their own; a switch has none."""

_DESCRIPTION = "WORDS"
"""What help calls a description, for which an empty text is a value: all is left open."""


class Command(TyperCommand):
    """A command that refuses empty words, as from ``-o "$OUT"`` with an unset variable.

    Where an argument is missing those that are there are looked at first (:class:`EarlyCheck`).
    """

    early_checks: Mapping[str, EarlyCheck] = MappingProxyType({})

    def get_params(self, ctx: Any) -> list[Any]:
        return without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # completion asks with words that are not typed yet
            return super().parse_args(ctx, args)
        self._check_words(str(ctx.command_path), args)
        self._check_once(args)
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            if ctx.parent is None:  # a command of a list is looked at, whose files are yet to be made
                raise
            arguments = [one for one in self.params if one.param_type_name == "argument"]
            lacking = getattr(error, "param", None)
            for parameter, word in zip(arguments, typed, strict=False):
                if lacking not in arguments or word.startswith("-"):
                    break
                if parameter.name in self.early_checks:
                    self.early_checks[parameter.name].check(word)
            likely = suggest_command(str(self.name), typed, str(lacking.metavar) if lacking in arguments else "")
            likely = likely or (
                suggest_quotes(typed) if "extra argument" in str(error) and self._takes("--given") else ""
            )
            if likely:
                ctx.fail(likely)
            raise

    def _takes(self, option: str) -> bool:
        return any(option in one.opts for one in self.params)

    def _check_words(self, path: str, args: list[str]) -> None:
        options = {name: one for one in self.params for name in one.opts if not getattr(one, "is_flag", True)}
        for before, word in zip(["", *args], args, strict=False):
            name, equals, value = word.partition("=")
            if word and (value or not equals or name not in options):
                continue
            option = name if word else before if before in options else ""
            if not option:
                raise UsageError(
                    f"{path.removeprefix('mmgen ')} got an empty word among its arguments; set the variable, or "
                    "leave the word out"
                )
            if options[option].metavar != _DESCRIPTION:
                raise UsageError(
                    f"{option} got an empty word, expected {options[option].metavar}; say one, or leave the option out"
                )

    def _check_once(self, args: list[str]) -> None:
        """Refuse two values for an option that has one; the parser would take the last without a word."""
        options = {name: one for one in self.params for name in one.opts if not getattr(one, "is_flag", True)}
        said: dict[Any, str] = {}
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
            if not option.multiple and said.setdefault(option.name, value) != value:
                raise UsageError(
                    f"{name} got {said[option.name]} and {value}, expected one {option.metavar}; leave one out"
                )


def command_of(name: str, function: Callable[..., Any], cls: type[Command] = Command) -> Any:
    """Return the command ``name`` that runs ``function``, with an option for each of its parameters and ``--code``."""
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name=name, cls=cls)(_with_code(function))
    loaded: Any = typer.main.get_command(single)
    loaded.early_checks = _marks(function, EarlyCheck)
    parameters: list[Any] = loaded.params
    for parameter in parameters:
        if getattr(parameter, "help", None):
            parameter.help = insert_member_names(parameter.help)
        if parameter.metavar is None:
            parameter.metavar = _METAVARS[parameter.bare_type().removeprefix("list[").removesuffix("]")]
    return loaded


def _with_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--code``, which all commands have, and look for missing files before the command begins."""
    files, sources = _marks(function, Reads), _marks(function, Source)

    @functools.wraps(function)
    def command(*, code: list[Path] | None = None, **options: Any) -> Any:
        if code:
            from mmgen.settings.registry import add_code

            for path in code:
                add_code(path)
        for name, reads in files.items():
            check_read(reads, options[name])
        for name in sources:
            check_source(options[name])
        return function(**options)

    signature = inspect.signature(function)
    shared = inspect.Parameter("code", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Code)
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]  # what typer reads
        parameters=[*signature.parameters.values(), shared]
    )
    command.__annotations__ = {**function.__annotations__, "code": Code}
    return command


def _marks(function: Callable[..., Any], kind: type[T]) -> dict[str, T]:
    """Return the marks of a kind in the annotations of a function's parameters, by name."""
    return {
        name: mark
        for name, hint in get_type_hints(function, include_extras=True).items()
        for mark in getattr(hint, "__metadata__", ())
        if isinstance(mark, kind)
    }


def literal(command: Any) -> Any:
    """Escape square brackets in a command's help, which are text and no markup."""
    from rich.markup import escape

    for holder in (command, *command.params):
        for name in ("help", "short_help", "rich_help_panel"):
            text = getattr(holder, name, None)
            if isinstance(text, str):
                setattr(holder, name, escape(_flowing(text)))
    for parameter in command.params:
        _plainly(parameter)
    return command


def _flowing(text: str) -> str:
    """Join the lines of each paragraph."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _plainly(parameter: Any) -> None:
    """Show a parameter's default in help as it is written, and leave out bounds that only computers have."""
    if isinstance(parameter.show_default, str):
        parameter._get_default_string = lambda **_: parameter.show_default
    if parameter.param_type_name == "argument":
        parameter.display_type_rich = lambda **_: None  # its name says what it is
    if str(LARGEST_SEED) in str(parameter._get_number_range_help_str()):
        parameter._get_number_range_help_str = lambda: None


def without_types(parameters: Sequence[Any]) -> list[Any]:
    """Return the parameters of a command without the type that typer puts beside switches: --help has no value."""
    for parameter in parameters:
        if parameter.metavar is None and getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return list(parameters)
