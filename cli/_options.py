"""Options and arguments of several commands."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from mmgen.cli._streams import read_stdin
from mmgen.core.errors import MmgenError, UsageError, advise_path, clip, reason_of
from mmgen.settings.kinds import FileFinder
from mmgen.settings.registry import Registry, list_registries, registry_of

LARGEST_SEED = 2**63 - 1

Code = Annotated[
    list[Path] | None,
    typer.Option(
        "--code",
        metavar="FILE.py",
        show_default=False,
        help="Run this Python file first: its objectives, networks, recipes, metrics ... can be named like others.",
    ),
]

_arguments: list[str] = []


def remember_command_line(arguments: Sequence[str]) -> None:
    """Remember the arguments after ``mmgen``, for :func:`command_line`."""
    _arguments[:] = arguments


def command_line() -> str:
    """Return the typed command, ``mmgen train ...``, with the path from stdin in place of ``-``."""
    return shlex.join(["mmgen", *_arguments])


def typed_arguments() -> list[str]:
    """Return the remembered arguments after ``mmgen``."""
    return [*_arguments]


@contextmanager
def use_arguments(arguments: Sequence[str]) -> Iterator[None]:
    """Use other arguments in this block, as if they had been typed, here and in the processes of ``--devices``."""
    before, argv = typed_arguments(), sys.argv
    remember_command_line(arguments)
    sys.argv = [argv[0], *arguments]
    try:
        yield
    finally:
        remember_command_line(before)
        sys.argv = argv


def read_path(text: str, kind: str = "file") -> Path:
    """Return the path in an argument after a check that it exists; ``-`` reads the path from stdin.

    Args:
        text: The argument.
        kind: Noun for the file in errors, such as "dataset".

    Raises:
        MmgenError: There is no such file, or stdin is empty.
        UsageError: Stdin has several paths.
    """
    if text == "-":
        lines = _use_paths_from_stdin(kind)
        if len(lines) > 1:
            raise UsageError(
                f"the argument - got {len(lines)} paths on stdin, {_quote_and_join(lines)}, expected one, of a {kind}; "
                "type its path instead of -"
            )
        text = lines[0]
    return _existing_path(text, kind)


def read_paths(texts: Sequence[str], kind: str = "file", folders: FileFinder | None = None) -> list[Path]:
    """Return the paths in arguments, each once, after a check that they exist; ``-`` stands for the lines of stdin.

    Args:
        texts: The arguments.
        kind: Noun for a file in errors, such as "file of scores".
        folders: Function that returns the files for which a folder stands, which is then accepted.

    Raises:
        MmgenError: There is no such file, or stdin is empty.
    """
    typed = [line for text in texts for line in (_use_paths_from_stdin(kind) if text == "-" else [text])]
    return list(
        dict.fromkeys(Path(text) if folders and folders(Path(text)) else _existing_path(text, kind) for text in typed)
    )


def read_input_paths(kind: str) -> list[str]:
    """Read the paths on stdin, one per line.

    Raises:
        MmgenError: Stdin is empty.
        UsageError: ``-`` stands twice in the command.
    """
    if (count := _arguments.count("-")) > 1:
        raise UsageError(
            f"the argument - stands {count} times in this command, expected once: stdin is read once; type "
            "the other paths"
        )
    lines = [line.strip() for line in read_stdin().split("\n") if line.strip()]
    if not lines:
        raise MmgenError(
            f"expected the path of a {kind} on stdin, got nothing: the command before this one in the pipe failed; "
            "see its message"
        )
    return list(dict.fromkeys(lines))


def _use_paths_from_stdin(kind: str) -> list[str]:
    """Read the paths on stdin, and replace ``-`` by them in the recorded command line."""
    lines = read_input_paths(kind)
    # The recorded command must work without the pipe, and so must the further processes of --devices, which are
    # started from sys.argv and find an empty stdin.
    _arguments[:] = _replace_dash(_arguments, lines)
    sys.argv[1:] = _replace_dash(sys.argv[1:], lines)
    return lines


def _replace_dash(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    return [word for typed in arguments for word in (lines if typed == "-" else [typed])]


def _quote_and_join(lines: Sequence[str]) -> str:
    return clip(" and ".join(map(repr, lines)), 300)


def _existing_path(text: str, kind: str) -> Path:
    path = Path(text)
    try:
        os.stat(path)
    except FileNotFoundError:
        advice = advise_path(path, "check the path, or make it with the command before")
        raise MmgenError(f"there is no {kind} at {path}: {advice}") from None
    except (OSError, ValueError) as error:
        raise MmgenError(f"cannot read the {kind} {str(path)!r}: {reason_of(error)}; check the path") from None
    if not path.is_dir():
        return path
    from mmgen.artifacts.files import find_main_exported_file

    found = find_main_exported_file(path, kind)
    if found == path:
        pictures = kind in ("dataset", "file")
        own = f"; of your own pictures mmgen make-data folder {shlex.quote(text)} makes a dataset" if pictures else ""
        article = "an" if kind[0] in "aeiou" else "a"
        raise MmgenError(f"{path} is a folder, expected {article} {kind}; name a file{own}")
    # mmgen.load takes the folder, and files made from it lie beside it. Nothing can lie beside ".".
    return path if kind == "model or aggregate" and path.name else found


Completion = Callable[[str], list[str]]


def _filter_by_prefix(names: list[str], prefix: str) -> list[str]:
    return [name for name in names if name.startswith(prefix)]


def complete_words(*names: str) -> Completion:
    """Return a completion function that offers these words."""

    def complete(incomplete: str) -> list[str]:
        return _filter_by_prefix(list(names), incomplete)

    return complete


def _member_names(registry: "Registry[object]") -> list[str]:
    try:
        return registry.names()
    except MmgenError:  # a broken file in MMGEN_CODE, which the command itself reports
        return []


def complete_members(package: str, *extra_words: str) -> Completion:
    """Return a completion function that offers a package's members, plug-ins among them, and ``extra_words``."""

    def complete(incomplete: str) -> list[str]:
        return _filter_by_prefix([*extra_words, *_member_names(registry_of(package))], incomplete)

    return complete


def complete_presets(incomplete: str) -> list[str]:
    """Return the full names of presets that begin with ``incomplete``."""
    from mmgen.settings.presets import preset_names

    return _filter_by_prefix(preset_names(), incomplete)


def complete_tables(incomplete: str) -> list[str]:
    """Return the names of reproducible tables that begin with ``incomplete``, each once."""
    from mmgen.experiments import experiment_names

    return _filter_by_prefix(list(dict.fromkeys(name.split("/")[0] for name in experiment_names())), incomplete)


def _names_by_kind() -> "dict[str, list[str]]":
    """Return the names of members and presets by kind, such as "objective" or "preset"."""
    from mmgen.settings.presets import preset_names

    return {registry.noun.replace(" ", "-"): _member_names(registry) for registry in list_registries()} | {
        "preset": preset_names()
    }


def complete_kinds(incomplete: str) -> list[str]:
    """Return the kinds of ``mmgen list`` that begin with ``incomplete``."""
    return _filter_by_prefix(list(_names_by_kind()), incomplete)


def complete_names_of_kind(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the members that begin with ``incomplete``, of the kind in the argument before."""
    return _filter_by_prefix(_names_by_kind().get(str(ctx.params.get("kind") or "").removesuffix("s"), []), incomplete)
