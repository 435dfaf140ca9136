"""Commands that run others: what Ctrl-C does, and what is said of one that the system has ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mmgen.cli import _stages
from mmgen.core import processes as signals
from mmgen.core.errors import MmgenError
from tests.cli.test_runs import until
from tests.program import environment

STAND_IN = """#!{python}
import signal, sys, time
from pathlib import Path

def save(number, frame):
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # the same request
    time.sleep(1)
    Path("saved").touch()
    sys.exit(130)

def once(number, frame):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

signal.signal(signal.SIGINT, {on_interrupt})
signal.signal(signal.SIGTERM, once if {on_interrupt} is signal.SIG_IGN else {on_interrupt})
Path("begun").touch()
{then}
"""
RUN = """
import signal, sys
from pathlib import Path
from mmgen.cli import _stages
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background begins with it ignored
sys.executable = sys.argv[1]
_stages.run_command(["train", "d.h5"], Path.cwd(), "the study")
"""


def stand_in(folder: Path, on_interrupt: str = "save", then: str = "time.sleep(60)") -> Path:
    path = folder / "stand-in"
    path.write_text(STAND_IN.format(python=sys.executable, on_interrupt=on_interrupt, then=then))
    path.chmod(0o755)
    return path


def started(folder: Path, program: Path) -> "subprocess.Popen[str]":
    """The program as a command that another process runs, both in a group of their own as at a terminal."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, program], cwd=folder, env=environment(), text=True, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    until((folder / "begun").exists)
    return process


@pytest.mark.slow_cases("to us alone", "at a terminal")
@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["at a terminal", "to us alone"])
def test_a_command_saves_at_ctrl_c(tmp_path: Path, send: Callable[[int, int], None]) -> None:
    process = started(tmp_path, stand_in(tmp_path))
    send(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in said and (tmp_path / "saved").exists()


@pytest.mark.slow
def test_ctrl_c_again_ends_it(tmp_path: Path) -> None:
    process = started(tmp_path, stand_in(tmp_path, on_interrupt="signal.SIG_IGN"))
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None, "it is waited for"
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGKILL, r"this command was killed \(SIGKILL\), most likely because memory ran out .*: mmgen train d"),
        (signal.SIGSEGV, r"this command was ended from outside \(SIGSEGV\), so the study ends here: mmgen train d"),
    ],
)
def test_a_command_that_the_system_ends(
    number: signal.Signals, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = f"import os; os.kill(os.getpid(), {int(number)})"
    monkeypatch.setattr(sys, "executable", str(stand_in(tmp_path, then=then)))
    with pytest.raises(MmgenError, match=said) as raised:
        _stages.run_command(["train", "d.h5"], tmp_path, "the study")
    assert raised.value.exit_code == 1


@pytest.mark.slow
def test_a_failing_command_is_named_and_its_exit_code_kept(tmp_path: Path) -> None:
    with pytest.raises(MmgenError, match="this command failed, so the study ends here: mmgen list nonsense") as raised:
        _stages.run_command(["list", "nonsense"], tmp_path, "the study")
    assert raised.value.exit_code == 2


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """As at a terminal, where nobody has told the process to ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_one_request_may_come_as_several_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    with signals.stop_on_signals() as request:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
        assert request.signal_number == signal.SIGINT
        monkeypatch.setattr(signals, "REPEAT_SECONDS", -1.0)  # a while later
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("number", signals.STOP_SIGNALS[1:])
def test_a_closed_terminal_a_scheduler_and_a_limit_of_time_ask_to_stop_as_a_system_does(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with signals.stop_on_signals() as request:
            signal.raise_signal(number)
            assert request.signal_number == number
        assert signal.getsignal(number) == signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # as after nohup
        with signals.stop_on_signals() as request:
            signal.raise_signal(number)
            assert request.signal_number is None
    finally:
        signal.signal(number, before)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="Windows has no such signal")
def test_a_script_keeps_what_it_has_for_a_schedulers_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_is_program", False)
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        with signals.stop_on_signals() as request:
            signal.raise_signal(signal.SIGUSR1)
        assert request.signal_number is None and heard == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)
