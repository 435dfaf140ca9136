"""The ``mmgen`` program: finds subcommands by file, runs one, turns what went wrong into one sentence and an exit code.

Exit codes: 0 done, 1 something failed, 2 bad usage or settings, 130 interrupted (143 terminated).
"""

import ast
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from mmgen import __version__
from mmgen.cli._console import result, say
from mmgen.cli._options import remember_command_line
from mmgen.errors import MmgenError

__all__ = ["app", "command_names", "load_command", "main"]

# Order in the help: that of the pipeline. A command that is not named here follows, by alphabet.
_ORDER = (
    "quickstart",
    "make-data",
    "train-classifier",
    "train",
    "fit-aggregate",
    "eval",
    "baseline",
    "sample",
    "show",
    "plot",
    "report",
    "reproduce",
    "list",
)


def _function_name(command: str) -> str:
    return f"{command.replace('-', '_')}_command"


def command_names() -> list[str]:
    """Names of all subcommands: the files of this folder without a leading underscore."""
    found = {path.stem.replace("_", "-") for path in Path(__file__).parent.glob("[!_]*.py")}
    return [name for name in _ORDER if name in found] + sorted(found - set(_ORDER))


def _short_help(command: str) -> str:
    """First paragraph of the command function's docstring, read without importing its file."""
    source = Path(__file__).with_name(f"{command.replace('-', '_')}.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == _function_name(command):
            return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return ""


def load_command(command: str) -> Any:
    """The runnable command, from its file."""
    module = importlib.import_module(f"mmgen.cli.{command.replace('-', '_')}")
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name=command)(getattr(module, _function_name(command)))
    return typer.main.get_command(single)


class _Commands(TyperGroup):
    """Subcommands by file; only the one that is asked for gets imported."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return command_names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in command_names():
            return None
        if self._listing:  # the overview needs names and first sentences, not options
            return TyperCommand(cmd_name, help=_short_help(cmd_name))
        return load_command(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in command_names() and not name.startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(name, command_names(), n=1, cutoff=0.5)
            hint = f"did you mean '{near[0]}'? " if near else ""
            ctx.fail(f"unknown command '{name}': {hint}Available: {', '.join(command_names())}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands,
    name="mmgen",
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command prints the path of what it made, and '-' reads a path from the command before: "
    "[bold]mmgen train data.h5 | mmgen fit-aggregate - | mmgen eval -[/bold]",
)


def _print_version(value: bool) -> None:
    if value:
        result(__version__)
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Generative models of images and text, from data to figures."""


def _complaint(error: typer.TyperException) -> str:
    """What the parser found wrong; where a value was refused, with what was got and what is expected."""
    text = error.format_message()
    faults = getattr(error.__cause__, "errors", None)  # pydantic's, which read the value
    parameter = getattr(error, "param", None)
    if faults is None or parameter is None:
        return text
    from mmgen.config import refused

    return refused("/".join(name for name in parameter.opts if name.startswith("--")) or parameter.name, faults()[0])


def _run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; errors that a user can mend become one sentence on stderr."""
    try:
        code = typer.main.get_command(app).main(list(arguments), prog_name="mmgen", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:  # typer turns Ctrl-C into this code, and says nothing
            say("mmgen: interrupted")
    except MmgenError as error:
        say(f"mmgen: {error}")
        return error.exit_code
    except typer.TyperException as error:  # the parser's complaints
        context = getattr(error, "ctx", None)
        say(f"mmgen: {_complaint(error)}")
        if context is not None:
            say(f"Try: {context.command_path} --help")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        say("mmgen: interrupted")
        return 130
    except BrokenPipeError:
        # Whoever read our results has left; Python must not complain when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code if isinstance(code, int) else 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the console script; leaves through SystemExit with the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    remember_command_line(arguments)
    raise SystemExit(_run(arguments or ["--help"]))
