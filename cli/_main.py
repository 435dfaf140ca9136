"""The ``mmgen`` program: finds subcommands by file, runs one, turns what went wrong into one sentence and an exit code.

Exit codes: 0 done, 1 something failed, 2 bad usage or settings, 130 interrupted (143 terminated).
"""

import ast
import errno
import importlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from mmgen.cli._commands import command_of, literal, without_types
from mmgen.cli._console import is_first_process, result, say
from mmgen.cli._members import MemberCommands
from mmgen.cli._options import remember_command_line
from mmgen.cli._parameters import member_room, stage_function
from mmgen.cli._streams import ReaderLeft, guarded_streams
from mmgen.commands import source_of, stage_class, stage_names
from mmgen.core.errors import MmgenError, clip
from mmgen.core.processes import begin_program
from mmgen.core.version import __version__
from mmgen.settings.registry import format_unknown_name

__all__ = ["app", "command_names", "complaint", "load_command", "main"]

# Order in the help: that of the pipeline. A command that is not named here follows, by alphabet.
_ORDER = (
    "quickstart",
    "make-data",
    "train-classifier",
    "train",
    "fit-aggregate",
    "eval",
    "baseline",
    "compare",
    "sample",
    "show",
    "plot",
    "report",
    "explore",
    "reproduce",
    "export",
    "list",
    "env",
)


def _function_name(command: str) -> str:
    return f"{command.replace('-', '_')}_command"


def command_names() -> list[str]:
    """Return the names of all commands: stages, and the files of this folder without a leading underscore."""
    found = {path.stem.replace("_", "-") for path in Path(__file__).parent.glob("[!_]*.py")} | {*stage_names()}
    return [name for name in _ORDER if name in found] + sorted(found - set(_ORDER))


def _short_help(command: str) -> str:
    """First paragraph of the docstring of a stage or of a command's function, read without importing its file."""
    is_stage = command in stage_names()
    file = source_of(command) if is_stage else Path(__file__).with_name(f"{command.replace('-', '_')}.py")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        if is_stage or node.name == _function_name(command):
            return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return ""


def load_command(command: str) -> Any:
    """Return the runnable command; one that takes a member of a room first has that member's options."""
    try:
        module = importlib.import_module(f"mmgen.cli.{command.replace('-', '_')}")
        function = getattr(module, _function_name(command))
    except ModuleNotFoundError:
        function = None
    if command not in stage_names():
        return command_of(command, function)
    stage = stage_class(command)
    if package := member_room(stage):
        return MemberCommands(command, stage_function(stage, function), package)
    return command_of(command, stage_function(stage, function))


class _Commands(TyperGroup):
    """Subcommands by file; only the one that is asked for gets imported."""

    _listing = False

    def get_params(self, ctx: Any) -> list[Any]:
        return without_types(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return command_names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in command_names():
            return None
        if self._listing:  # the overview needs names and first sentences, not options
            return literal(TyperCommand(cmd_name, help=_short_help(cmd_name)))
        return literal(load_command(cmd_name))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in command_names() and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(format_unknown_name("command", name, command_names(), list_command="mmgen --help"))
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands,
    name="mmgen",
    help="Generative models of images and text, from data to figures.",
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="New here? [bold]mmgen quickstart[/bold] shows everything in some minutes. Each command prints the path of "
    "what it made, and '-' reads a path from the command before: "
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
    """Read the options of the program itself."""


def complaint(error: typer.TyperException) -> str:
    """Format the parser's error as one sentence; for a refused value with the value and what is expected."""
    text = str(MmgenError(error.format_message()))  # clipped as all messages are
    faults = getattr(error.__cause__, "errors", None)  # pydantic's, which read the value
    parameter = getattr(error, "param", None)
    if faults is None or parameter is None:
        return text
    from mmgen.settings.config import format_value_fault  # loads pydantic, which help does without

    return format_value_fault(
        "/".join(name for name in parameter.opts if name.startswith("--")) or parameter.name, faults()[0]
    )


_OF_THE_MACHINE = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EIO: "check the disk",
    errno.EROFS: "choose another folder",
    errno.EACCES: "choose a place that you may use",
    errno.EPERM: "choose a place that you may use",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "choose another path",
    errno.EMFILE: "raise the limit (ulimit -n)",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: "close other programs, or ask for less at a time",
    errno.EAGAIN: "close other programs, or use fewer --workers",
}
"""Errors of the system, and what helps against each; any other OSError is a bug of ours."""


_NO_MEMORY = re.compile("can't allocate memory|out of memory|invalid buffer size", re.IGNORECASE)

_BEFORE_WE_SPEAK = 2.0  # seconds
_LOST_ANOTHER = re.compile("gloo|nccl|tcpstore|connection|broken pipe", re.IGNORECASE)


def _fault_of_the_machine(error: Exception) -> str | None:
    """Return a sentence for a fault of the machine: no memory, full disk, killed process; None for a bug."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    text = str(error)
    short = "RuntimeError" in kinds and _NO_MEMORY.search(text)
    if "MemoryError" in kinds or "OutOfMemoryError" in kinds or short:
        size = re.search(r"allocate ([\d.,]+ ?\w+)", text)
        wanted = f" (for {size[1]} at once)" if size else ""
        return (
            f"memory ran out{wanted}; ask for less at a time (a smaller --batch, --number, --samples or --size), "
            "or use a machine with more"
        )
    if "RuntimeError" in kinds and _LOST_ANOTHER.search(text):
        from mmgen.training.others import failure_of_another_process  # which is loaded where this happens

        if said := failure_of_another_process():
            return said
    if "BrokenProcessPool" in kinds:
        return "a process of ours was killed, most likely because memory ran out; use fewer --workers"
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        what = f"cannot use {clip(str(error.filename), 300)}" if error.filename is not None else "the system refused"
        return f"{what}: {os.strerror(error.errno).lower()}; {_OF_THE_MACHINE[error.errno]}"
    return None


class Terminated(BaseException):
    """SIGTERM as an exception, so that files are tidied up as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


_SAME = 1.0  # seconds in which a terminal, and a program that runs this one, may both pass one request on
_asked: dict[str, float] = {}
"""Requests to stop ("interrupted"), and when they came."""


def _stop(number: int, frame: object) -> None:
    """Raise what ends a command, once for each request: what tidies up must not be ended by the same one again."""
    word = "interrupted" if number == signal.SIGINT else "terminated"
    if _asked and time.monotonic() - min(_asked.values()) < _SAME:
        return
    _asked[word] = time.monotonic()
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


def _hear_signals() -> None:
    """Let Ctrl-C and SIGTERM end a command, unless the parent process ignores them."""
    _asked.clear()
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)


def _leave_it_to_the_first() -> None:
    """Wait for the first process of ``--devices``, which reports the error and ends the others."""
    if not is_first_process():
        time.sleep(_BEFORE_WE_SPEAK)


def _check_current_folder() -> None:
    """Refuse to run in a removed folder, in which libraries end the process and relative paths fail."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise MmgenError("the current folder was removed; change to another one (cd) and repeat the command") from None


def _run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; what a user can fix becomes one sentence on stderr."""
    try:
        begin_program()
        _hear_signals()
        _check_current_folder()
        code = typer.main.get_command(app).main(list(arguments), prog_name="mmgen", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:  # typer turns Ctrl-C into this code, and says nothing
            _leave_it_to_the_first()
            say("mmgen: interrupted")
    except ReaderLeft:
        return 1
    except MmgenError as error:
        _leave_it_to_the_first()
        say(f"mmgen: {error}")
        return error.exit_code
    except typer.TyperException as error:  # the parser's complaints
        context = getattr(error, "ctx", None)
        say(f"mmgen: {complaint(error)}")
        if context is not None:
            say(f"Try: {context.command_path} --help")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _leave_it_to_the_first()
        say("mmgen: interrupted")
        return 130
    except Terminated as left:
        _leave_it_to_the_first()
        say("mmgen: terminated")
        return 128 + left.number
    except (
        Exception
    ) as error:  # memory, disks and workers fail in exceptions of many libraries; a bug keeps its traceback
        _leave_it_to_the_first()
        if _asked:  # a library passed it over in the middle of something, and is broken now
            word = next(iter(_asked))
            say(f"mmgen: {word}")
            return 130 if word == "interrupted" else 143
        sentence = _fault_of_the_machine(error)
        if sentence is None:
            raise
        say(f"mmgen: {sentence}")
        return 1
    return code if isinstance(code, int) else 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the console script; leaves through SystemExit with the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    remember_command_line(arguments)
    with guarded_streams():
        code = _run(arguments or ["--help"])
    raise SystemExit(code)
