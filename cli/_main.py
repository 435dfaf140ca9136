"""The ``mmgen`` program: finds subcommands by file, runs one, and turns errors into one sentence and an exit code.

Exit codes: 0 done, 1 something failed, 2 bad usage or settings, 130 interrupted (143 terminated).
"""

import ast
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

from mmgen.cli._commands import build_command, escape_markup, hide_switch_types
from mmgen.cli._console import print_result, say
from mmgen.cli._members import MemberCommands
from mmgen.cli._options import remember_command_line
from mmgen.cli._parameters import member_package, stage_function
from mmgen.cli._streams import ReaderLeft, guarded_streams
from mmgen.commands import source_file_of, stage_class, stage_names
from mmgen.core.errors import Interrupted, MmgenError, advice_of, clip, format_unknown_name
from mmgen.core.parsing import strip_controls
from mmgen.core.processes import REPEAT_SECONDS, prepare_program, stop_handlers, stop_requests
from mmgen.core.surroundings import is_first_process
from mmgen.core.version import __version__
from mmgen.core.worlds import added_files

_GROUPS = {
    "Start": ("quickstart",),
    "Make": ("make-data", "fill-gaps", "train-classifier", "train", "fit-aggregate", "fit-sharpener"),
    "Measure": ("eval", "baseline", "compare", "reproduce"),
    "Draw and share": ("sample", "plot", "report", "explore", "export"),
    "Look up and check": ("list", "show", "status", "check", "env"),
}
"""Groups of commands in the overview, in its order; other commands follow in alphabetical order."""


_FILES = {
    **dict.fromkeys(("make-data", "train", "train-classifier", "fit-aggregate"), "_make"),
    **dict.fromkeys(("sample", "plot"), "_make"),
    **dict.fromkeys(("eval", "compare"), "_measure"),
    **dict.fromkeys(("list", "show", "status", "check", "env"), "_look"),
}
"""Files of this folder with the functions of several commands; that of any other has its name."""


_ANSWERS = {
    "serve": "mmgen export MODEL DIR --page writes a page for any web server; docs/questions.md has an API",
    "resume": "give the same command again, and it goes on where it stopped",
    "ui": "mmgen explore FILES writes a page to play with, which needs no server",
}
"""What does what commands that do not exist would do."""


def _source_files() -> dict[str, Path]:
    """Return the files of this folder and those that worlds add to it, by the names of their modules."""
    return {
        **{f"mmgen.cli.{path.stem}": path for path in Path(__file__).parent.glob("*.py")},
        **added_files("mmgen.cli"),
    }


def _module_of(command: str) -> str:
    """Return the name of the module with a command's function; "" where nothing but a path is printed."""
    stem = _FILES.get(command, command.replace("-", "_"))
    return next((module for module, path in _source_files().items() if path.stem == stem), "")


def _command_function_name(command: str) -> str:
    return f"{command.replace('-', '_')}_command"


def command_names() -> list[str]:
    """Return the names of all commands: those of stages, and of the public files of this folder."""
    files = {path.stem.replace("_", "-") for path in _source_files().values() if not path.stem.startswith("_")}
    names = files | {*_FILES, *stage_names()}
    ordered = [name for group in _GROUPS.values() for name in group]
    return [name for name in ordered if name in names] + sorted(names - set(ordered))


def _short_help(command: str) -> str:
    """Read the first paragraph of the docstring of a stage or command function without importing its file."""
    is_stage = command in stage_names()
    file = source_file_of(command) if is_stage else _source_files()[_module_of(command)]
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        if is_stage or node.name in (_command_function_name(command), command.capitalize()):
            return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return ""


def load_command(command: str) -> Any:
    """Import a command and return its parser."""
    module = _module_of(command)
    function = getattr(importlib.import_module(module), _command_function_name(command)) if module else None
    if command not in stage_names():
        assert function is not None
        return build_command(command, function)
    stage = stage_class(command)
    if package := member_package(stage):
        return MemberCommands(command, stage_function(stage, function), package)
    return build_command(command, stage_function(stage, function))


class _Commands(TyperGroup):
    """Group of all subcommands, which imports only the typed one."""

    _listing = False

    def get_params(self, ctx: Any) -> list[Any]:
        return hide_switch_types(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return command_names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in command_names():
            return None
        if self._listing:  # the overview needs names and first sentences, not options
            panel = next((title for title, group in _GROUPS.items() if cmd_name in group), "Other commands")
            return escape_markup(TyperCommand(cmd_name, help=_short_help(cmd_name), rich_help_panel=panel))
        return escape_markup(load_command(cmd_name))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in command_names() and not name.startswith("-") and not ctx.resilient_parsing:
            answer = _ANSWERS.get(name, "")
            if answer and {*re.findall(r"mmgen ([a-z-]+)", answer)} <= {*command_names()}:
                ctx.fail(f"there is no command '{name}': {answer}")
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
        print_result(__version__)
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Define the option ``--version`` of the program."""


def format_parser_error(error: typer.TyperException) -> str:
    """Format the parser's error as one sentence; for a refused value it states value and expectation."""
    text = str(MmgenError(error.format_message()))  # clipped as all messages are
    faults = getattr(error.__cause__, "errors", None)  # pydantic's, which read the value
    parameter = getattr(error, "param", None)
    if faults is None or parameter is None:
        return text
    from mmgen.settings.config import format_value_fault  # loads pydantic, which help does without

    return format_value_fault(
        "/".join(name for name in parameter.opts if name.startswith("--")) or parameter.name, faults()[0]
    )


_OUT_OF_MEMORY = re.compile("can't allocate memory|out of memory|invalid buffer size", re.IGNORECASE)

_FIRST_PROCESS_SECONDS = 2.0  # seconds
_CONNECTION_LOST = re.compile("gloo|nccl|tcpstore|connection|broken pipe", re.IGNORECASE)


def _explain_system_failure(error: Exception) -> str | None:
    """Return a sentence for a failure of the machine (no memory, full disk, killed process); None for a bug."""
    class_names = {kind.__name__ for kind in type(error).__mro__}
    text = str(error)
    is_out_of_memory = "RuntimeError" in class_names and _OUT_OF_MEMORY.search(text)
    if "MemoryError" in class_names or "OutOfMemoryError" in class_names or is_out_of_memory:
        size = re.search(r"allocate ([\d.,]+ ?\w+)", text)
        amount = f" (for {size[1]} at once)" if size else ""
        return (
            f"memory ran out{amount}; ask for less at a time (a smaller --batch, --number, --samples or --size), "
            "or use a machine with more (docs/questions.md#out-of-memory)"
        )
    if "RuntimeError" in class_names and _CONNECTION_LOST.search(text):
        from mmgen.training.devices import describe_failed_process  # which is loaded where this happens

        if sentence := describe_failed_process():
            return sentence
    if "BrokenProcessPool" in class_names:
        return "a worker process was killed, most likely because memory ran out; use fewer --workers"
    if isinstance(error, OSError) and (advice := advice_of(error)):
        fault = f"cannot use {clip(str(error.filename), 300)}" if error.filename is not None else "the system refused"
        return f"{fault}: {os.strerror(error.errno or 0).lower()}; {advice}"
    return None


class Terminated(BaseException):
    """Exception that a signal other than Ctrl-C raises, so that temporary files are removed as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _raise_stop_request(number: int, frame: object) -> None:
    """Handle a signal by an exception that ends the command; ignore its repetition within a second."""
    if stop_requests and time.monotonic() - max(stop_requests.values()) < REPEAT_SECONDS:
        return
    stop_requests[number] = time.monotonic()
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


def _install_signal_handlers() -> None:
    """Let Ctrl-C, SIGTERM and their kind end a command, unless the parent process made this one ignore them."""
    stop_requests.clear()
    if threading.current_thread() is not threading.main_thread():
        return
    for number in stop_handlers():
        signal.signal(number, _raise_stop_request)


def _wait_for_first_process() -> None:
    """Wait, unless this is the first process of ``--devices``, which reports the error and ends the others."""
    if not is_first_process():
        time.sleep(_FIRST_PROCESS_SECONDS)


def _check_current_folder() -> None:
    """Refuse to run if the current folder was removed, where relative paths fail."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise MmgenError("the current folder was removed; change to another one (cd) and repeat the command") from None


def _run_command_line(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; a user's mistake becomes one sentence on stderr."""
    try:
        prepare_program()
        _install_signal_handlers()
        _check_current_folder()
        code = typer.main.get_command(app).main(list(arguments), prog_name="mmgen", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:  # typer turns Ctrl-C into this code without a message
            _wait_for_first_process()
            say("mmgen: interrupted")
    except ReaderLeft:
        return 1
    except (MmgenError, Interrupted) as error:
        _wait_for_first_process()
        say(f"mmgen: {strip_controls(str(error), keep='')}")  # one line, whatever the names of files hold
        return error.exit_code
    except typer.TyperException as error:  # errors of the parser
        context = getattr(error, "ctx", None)
        say(f"mmgen: {format_parser_error(error)}")
        if context is not None:
            say(f"Try: {context.command_path} --help")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _wait_for_first_process()
        say("mmgen: interrupted")
        return 130
    except Terminated as left:
        _wait_for_first_process()
        say("mmgen: terminated")
        return 128 + left.number
    except (
        Exception
    ) as error:  # memory, disks and workers fail in exceptions of many libraries; a bug keeps its traceback
        _wait_for_first_process()
        if stop_requests:  # a library swallowed the request and then failed
            number = next(iter(stop_requests))
            say(f"mmgen: {'interrupted' if number == signal.SIGINT else 'terminated'}")
            return 128 + number
        is_completion = "_MMGEN_COMPLETE" in os.environ
        sentence = f"cannot complete this line: {error!r}" if is_completion else _explain_system_failure(error)
        if sentence is None:
            raise
        say(f"mmgen: {sentence}")
        return 1
    return code if isinstance(code, int) else 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program with the arguments after ``mmgen``; ends in SystemExit with the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    remember_command_line(arguments)
    with guarded_streams():
        code = _run_command_line(arguments or ["--help"])
    raise SystemExit(code)
