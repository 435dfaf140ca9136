"""What lies outside the program (no memory, no room, killed processes) is one sentence; a bug keeps its traceback."""

import concurrent.futures.process
import errno
from typing import Any

import pytest

from mmgen.cli import _main
from mmgen.core.errors import Interrupted, MmgenError, UsageError
from tests.program import ROOT

FAULTS = [
    (MmgenError("it broke"), "it broke\n"),
    (UsageError("it broke"), "it broke\n"),
    (Interrupted("it broke", 15), "it broke\n"),
    (KeyboardInterrupt(), "interrupted"),
    (MemoryError(), "memory ran out; ask for less"),
    (MemoryError("Unable to allocate 3.64 TiB for an array with shape (5,)"), "memory ran out (for 3.64 TiB at once)"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 40 bytes"), "(for 40 bytes at"),
    (RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB."), "(for 20.00 GiB at once)"),
    (concurrent.futures.process.BrokenProcessPool("gone"), "a worker process was killed"),
    (OSError(errno.ENAMETOOLONG, "File name too long", "n" * 400), "file name too long; choose a shorter name"),
    (OSError(errno.ENOSPC, "No space left on device"), "the system refused: no space left on device; free some"),
    (PermissionError(errno.EACCES, "Permission denied", "/x"), "cannot use /x: permission denied; choose"),
]


def planted(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    import mmgen.cli._look

    def list_command() -> None:
        """Planted."""
        raise error

    monkeypatch.setattr(mmgen.cli._look, "list_command", list_command)


@pytest.mark.parametrize(("error", "said"), FAULTS, ids=[type(fault[0]).__name__ for fault in FAULTS])
def test_faults_of_the_machine(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    planted(error, monkeypatch)
    with pytest.raises(SystemExit) as left:
        _main.main(["list"])
    codes = {KeyboardInterrupt: 130, UsageError: 2, Interrupted: 143}
    assert left.value.code == codes.get(type(error), 1)
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and len(err) < 450
    assert err.startswith("mmgen: ") and said in err


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), RuntimeError("shapes differ"), OSError(errno.EBADF, "bad"), BrokenPipeError()]
)
def test_bugs_keep_their_traceback(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(error, monkeypatch)
    with pytest.raises(type(error)):
        _main.main(["list"])


def _dies(number: int) -> int:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.slow
def test_a_killed_worker_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from mmgen.data_recipes._base import map_in_order

    monkeypatch.syspath_prepend(ROOT)  # where a worker finds this file
    with pytest.raises(MmgenError, match=r"was killed .* use fewer --workers"):
        list(map_in_order(_dies, [(1,), (2,)], 2))
