"""The program as a whole: help, exit codes, what goes to which stream."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from mmgen import __version__
from mmgen.cli import _main

# What must not be paid for by somebody who asks for help.
HEAVY = ("torch", "numpy", "h5py", "sklearn", "matplotlib", "zuko", "pydantic")


class Left(NamedTuple):
    """What a command leaves: top-level packages in memory, and what it said on stderr."""

    loaded: set[str]
    said: str


def left_by(*lines: str) -> list[Left]:
    """What each of several ``mmgen`` commands leaves, one after another in a process of their own."""
    code = (
        "import contextlib, io, json, shlex, sys\nfrom mmgen.cli._main import main\n"
        "for line in sys.argv[1:]:\n"
        "    said = io.StringIO()\n"
        "    try:\n        with contextlib.redirect_stderr(said):\n            main(shlex.split(line))\n"
        "    except SystemExit:\n"
        "        print('\\nleft', json.dumps([sorted({m.split('.')[0] for m in sys.modules}), said.getvalue()]))"
    )
    done = subprocess.run([sys.executable, "-c", code, *lines], capture_output=True, text=True, check=True)
    left = [json.loads(line.removeprefix("left ")) for line in done.stdout.splitlines() if line.startswith("left ")]
    return [Left(set(loaded), said) for loaded, said in left]


def test_help_loads_nothing_heavy() -> None:
    (left,) = left_by("--help")
    assert "typer" in left.loaded
    assert not left.loaded & set(HEAVY)


def test_no_commands_help_loads_torch() -> None:
    commands = _main.command_names()
    for command, left in zip(commands, left_by(*(f"{command} --help" for command in commands)), strict=True):
        assert "torch" not in left.loaded, command


@pytest.mark.slow
def test_a_file_that_is_not_there_is_told_before_anything_heavy_is_loaded() -> None:
    """Whatever the command: torch and matplotlib take seconds."""
    around = {"plot": "curves {}", "export": "{} folder", "make-data": "mnist --mnist {}", "reproduce": "{}.toml"}
    commands = [name for name in _main.command_names() if name not in ("env", "quickstart", "list")]
    lines = [f"{command} {around.get(command, '{}').format('no-such-file')}" for command in commands]
    for line, left in zip(lines, left_by(*lines), strict=True):
        assert not left.loaded & {"torch", "matplotlib", "sklearn"}, line
        assert left.said.startswith("mmgen: ") and left.said.count("\n") == 1, line
        assert "no-such-file" in left.said, line


def test_showing_a_file_loads_no_torch() -> None:
    golden = Path(__file__).parents[1] / "golden"
    shown = left_by(*(f"show {golden / name}" for name in ("dataset-v3.h5", "model-v3.safetensors")))
    for left in shown:
        assert left.said == ""
        assert "numpy" in left.loaded and not left.loaded & {"torch", "matplotlib"}


def test_overview_names_each_command_with_a_sentence(run) -> None:
    overview = " ".join(run("--help").stdout.split())
    for command in _main.command_names():
        sentence = _main._short_help(command)
        assert sentence.endswith("."), f"{command}: its docstring must open with a sentence"
        assert f" {command} {sentence[:20]}" in overview


def test_short_help_read_from_source_is_the_functions_own() -> None:
    for command in _main.command_names():
        loaded = " ".join((_main.load_command(command).help or "").split())
        assert loaded.startswith(_main._short_help(command))


def test_version(run) -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"{__version__}\n")
    assert run().stdout == run("--help").stdout, "no arguments ask for help"


def test_the_overview_has_groups(run) -> None:
    overview = run("--help").stdout
    places = [overview.index(f"─ {title} ") for title in _main._GROUPS]
    assert places == sorted(places) and "Other commands" not in overview
    assert "New here? mmgen quickstart" in " ".join(overview.split())


def test_a_reader_that_leaves_early_is_no_bug() -> None:
    program = f"{sys.executable} -c 'from mmgen.cli._main import main; main()' list --json | head -n 1"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.count("\n") <= 1
