"""Standard streams that are closed, full or endless: a sentence where it can be said, and the right exit code."""

import errno
import io
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from mmgen.cli import _main, _options, _streams
from mmgen.core.errors import MmgenError

PROGRAM = f"{sys.executable} -c 'from mmgen.cli._main import main; main()'"
CASES = [
    ("list objective > /dev/full", 1, "mmgen: cannot write results to stdout: no space left on device"),
    ("--help > /dev/full", 1, "mmgen: cannot write results to stdout: no space left on device"),
    ("list objective --json >&-", 1, "mmgen: cannot write results to stdout: it is closed"),
    ("train --help >&-", 1, "mmgen: cannot write results to stdout: it is closed"),
    ("list objective 2>&-", 0, ""),
    ("list nonsense 2>&-", 2, ""),
    ("list nonsense 2> /dev/full", 2, ""),
    ("show - <&-", 1, "mmgen: expected a path on stdin, which is closed"),
    ("show - < /dev/zero", 1, "mmgen: expected a path on stdin, got more than a megabyte"),
]


@pytest.mark.slow_cases("list objective 2>&-", "list objective --json >&-", "train --help >&-", "show - < /dev/zero")
@pytest.mark.parametrize(("typed", "code", "said"), CASES, ids=[case[0] for case in CASES])
def test_a_sentence_and_the_right_exit_code(typed: str, code: int, said: str, tmp_path: Path) -> None:
    command = ["bash", "-c", f"{PROGRAM} {typed}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == code
    assert done.stderr.startswith(said) and done.stderr.count("\n") == (1 if said else 0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command", [name for name in _main.command_names() if name not in ("list", "quickstart", "env")]
)
def test_no_command_reads_a_closed_stdin(command: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Wherever '-' may stand for a path."""
    typed = {"plot": ["curves", "-"], "export": ["-", "folder"], "make-data": ["-"], "reproduce": ["-"]}.get(
        command, ["-"]
    )
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as left:
        _main.main([command, *typed])
    assert left.value.code in (1, 2)
    said = capsys.readouterr().err
    assert said.startswith("mmgen: ") and "Traceback" not in said
    assert ("stdin, which is closed" in said) == (command not in ("make-data", "reproduce", "check", "status"))


class Broken(io.StringIO):
    """A stream that takes nothing."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, text: str) -> int:
        raise OSError(self.number, "refused")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EPIPE, errno.EBADF])
def test_talk_that_cannot_be_heard_ends_nothing(number: int, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from mmgen.cli._console import print_result, print_table, say

    monkeypatch.setattr(sys, "stderr", Broken(number))
    with _streams.guarded_streams():
        say("working")
        print_table("t", ("a", "b"), [("1", "2")])
        print_result("made.h5")
    assert capsys.readouterr().out == "made.h5\n"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EBADF])
def test_a_result_that_cannot_be_printed_is_an_error(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmgen.cli._console import print_result

    monkeypatch.setattr(sys, "stdout", Broken(number))
    with _streams.guarded_streams(), pytest.raises(MmgenError, match="cannot write results to stdout"):
        print_result("made.h5")


def test_paths_need_not_be_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A path with a byte that is no UTF-8 comes through a pipe and can be shown."""
    path = Path(str(tmp_path), b"n\xff.h5".decode("utf-8", "surrogateescape"))
    path.touch()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bytes(path) + b"\n"), "utf-8"))
    assert _options.read_path("-") == path
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(sys, "stdout", out)
    with _streams.guarded_streams():
        print(path, flush=True)
    assert out.buffer.getvalue().endswith(b"n\\udcff.h5\n")  # type: ignore[attr-defined]


def test_warnings_of_libraries_are_one_line(capsys: Any) -> None:
    with _streams.guarded_streams():
        warnings.filterwarnings("always")
        warnings.warn("the first line\nand more " + "x" * 5000, UserWarning, stacklevel=1)
        warnings.warn("y" * 5000, UserWarning, stacklevel=1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "note: the first line (UserWarning)"
    assert len(lines) == 2 and len(lines[1]) < 250
