"""A request to stop is heard in the end, also where Python or a library has swallowed its exception."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mmgen.cli import _main
from mmgen.cli._console import follow
from mmgen.core import processes
from mmgen.core.progress import Progress, Work
from tests.program import environment

LOST = """
import os, sys, time

class Slow:
    def __del__(self):  # an exception in here is told to nobody
        os.write(2, b"now\\n")
        while True:
            pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "mmgen.commands.show":
            sys.meta_path.remove(self)
            slow = Slow()
            del slow
            time.sleep(60)  # as of a training that goes on

sys.meta_path.insert(0, Finder())
sys.argv = ["mmgen", "show", "x.h5"]
from mmgen.__main__ import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_python_ignores_exceptions(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """As in a destructor or a callback while libraries are imported, which take many seconds on a busy machine."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOST], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None and process.stderr.readline() == "now\n"
        time.sleep(0.1)
        process.send_signal(number)
        said = process.communicate(timeout=30)[1]
    finally:
        process.kill()
    assert (process.returncode, said.strip()) == (code, f"mmgen: {'interrupted' if code == 130 else 'terminated'}")


@pytest.fixture
def _handlers() -> Iterator[None]:
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    _main._install_signal_handlers()
    yield
    processes.stop_requests.clear()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_handlers")
def test_a_signal_that_a_library_has_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with suppress(BaseException):  # as some libraries do while they are imported
        signal.raise_signal(signal.SIGINT)
    assert follow(Work("quick", 1, "step", lambda: iter([Progress(1)]))) is None, "it may still be tidied up"
    monkeypatch.setattr(processes, "REPEAT_SECONDS", -1.0)  # a while later
    monkeypatch.setattr(_main, "REPEAT_SECONDS", -1.0)
    steps = []
    with pytest.raises(KeyboardInterrupt):
        follow(Work("long", 9, "step", lambda: (steps.append(n) or Progress(n) for n in range(9))))
    assert steps == [0]
