"""Processes that we start: none looks for modules in the current folder, none outlives us, none is one too many."""

import ast
import contextlib
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import pytest

from mmgen.core import processes
from mmgen.core.errors import MmgenError
from mmgen.data_recipes._base import map_in_order
from tests.program import ROOT, environment
from tests.test_floors import SOURCES

HOME = str(ROOT)
STARTS = {
    "mmgen/core/processes.py": "the one place",
    "mmgen/training/devices.py": "a script of the user's again, as it was started",
    "data_recipes/_base.py": "workers of joblib, inside `starting`, and joblib on Dask's workers, started by others",
}
"""Files that start processes, and how each keeps the promises."""


def starts(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            if owner in ("subprocess", "multiprocessing", "pty") or node.func.attr in (
                "Parallel",
                "ProcessPoolExecutor",
            ):
                return True
            if owner == "os" and node.func.attr.startswith(("exec", "spawn", "posix_spawn", "fork", "system", "popen")):
                return True
    return False


def test_processes_are_started_in_few_places() -> None:
    assert {str(path.relative_to(ROOT)) for path in SOURCES if starts(path)} == set(STARTS)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder of somebody's, with modules that leave a mark when they are imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in ("random", "pickle", "argparse", "typing", "numpy", "joblib", "torch", "mmgen_cli", "sitecustomize"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'a').write({name!r})")
    return folder


@pytest.mark.parametrize("written", ["", ".", "{}", "{}/", "{}/../hostile", "link"])
def test_the_current_folder_is_off_the_path_however_it_is_written(hostile: Path, written: str) -> None:
    (hostile / "link").symlink_to(".")
    with contextlib.chdir(hostile):
        kept = processes.remove_current_folder([written.format(hostile), "/elsewhere", *sys.path[-1:]])
    assert kept == ["/elsewhere", *sys.path[-1:]]


def test_where_mmgen_itself_lies_comes_last() -> None:
    with contextlib.chdir(HOME):
        assert processes.remove_current_folder(["", HOME, "/elsewhere"]) == ["/elsewhere", HOME]


def test_children_have_no_empty_or_relative_entries(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "relative", str(hostile), "/elsewhere", ""]))
    with contextlib.chdir(hostile):
        variables = processes.child_environment()
    assert variables == {"PYTHONSAFEPATH": "1", "PYTHONPATH": "/elsewhere", processes.OWNER: str(os.getpid())}


def test_a_library_finds_its_path_and_environment_as_they_were(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    path, variables = list(sys.path), dict(os.environ)
    with contextlib.chdir(hostile), processes.safe_import_path():
        assert "" not in sys.path and os.environ["PYTHONSAFEPATH"] == "1"
    assert sys.path == path and dict(os.environ) == variables


def test_a_stage_is_started_off_the_current_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(processes.subprocess, "Popen", lambda command, **more: seen.append((command, more)))
    processes.start_mmgen(["train", "d.h5"], {"A": "b"})
    command, more = seen[0]
    assert command == [sys.executable, "-P", "-m", "mmgen", "train", "d.h5"]
    assert more["env"]["A"] == "b" and more["env"]["PYTHONSAFEPATH"] == "1"
    assert more["env"][processes.OWNER] == str(os.getpid())


@pytest.mark.parametrize("safe", [False, True])
def test_a_child_that_began_with_the_current_folder_refuses(
    safe: bool, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes.sys, "flags", types.SimpleNamespace(safe_path=safe))
    monkeypatch.setattr(processes, "remove_current_folder", lambda path: [str(hostile)])
    monkeypatch.setattr(processes, "end_with_parent", lambda *_: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with contextlib.chdir(hostile), pytest.raises(MmgenError, match="has the current folder on its import path"):
        processes.prepare_worker(os.getppid())


def _seen(number: int) -> tuple[bool, list[str], str]:
    import random  # the first time in a worker

    return bool(sys.flags.safe_path), sys.path, str(random.__file__)


@pytest.mark.slow
def test_workers_import_nothing_from_the_current_folder(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", *sys.path, HOME])  # where these tests lie
    with contextlib.chdir(hostile):
        for safe, path, found in map_in_order(_seen, [(1,), (2,)], 2):
            assert safe and "" not in path and str(hostile) not in path and HOME in path
            assert "hostile" not in found
    assert not (hostile.parent / "mark").exists()


def test_python_m_mmgen_imports_nothing_from_the_current_folder(hostile: Path) -> None:
    own = {**environment(), "PYTHONPATH": "" if "site-packages" in processes.__file__ else HOME}
    done = subprocess.run([sys.executable, "-m", "mmgen", "--version"], cwd=hostile, env=own, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert not (hostile.parent / "mark").exists()


CHILD = """
import os, sys, time
from mmgen.core.processes import end_with_parent
end_with_parent({owner}, {by_kernel})
print("there", os.getpid(), flush=True)
{then}
"""
OWNER = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-P", "-c", sys.argv[1].replace("OWNER", str(os.getpid()))])
time.sleep(60)
"""


@pytest.mark.parametrize(("by_kernel", "then"), [(True, "sum(range(10**10))"), (False, "time.sleep(60)")])
def test_a_child_ends_with_its_owner(by_kernel: bool, then: str) -> None:
    """The kernel ends even one that is deaf in a library's loop."""
    program = CHILD.format(owner="OWNER", by_kernel=by_kernel, then=then)
    with subprocess.Popen(
        [sys.executable, "-P", "-c", OWNER, program], stdout=subprocess.PIPE, env=environment()
    ) as own:
        assert own.stdout is not None
        child = int(own.stdout.readline().split()[1])
        own.kill()
        until = time.monotonic() + 2
        while _is_there(child) and time.monotonic() < until:
            time.sleep(0.02)
        assert not _is_there(child)


def _is_there(number: int) -> bool:
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"  # which waits for its new parent to notice
    except OSError:
        return False


def test_a_child_whose_owner_is_gone_before_it_looks_ends() -> None:
    program = CHILD.format(owner=1 << 22, by_kernel=False, then="")
    done = subprocess.run([sys.executable, "-P", "-c", program], env=environment(), capture_output=True)
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_few_processes_for_each_core_are_started_at_most() -> None:
    assert [processes.choose_process_count(asked, 2) for asked in (None, 1, 8, 9, 1000)] == [2, 1, 8, 8, 8]


@pytest.mark.parametrize(("asked", "calls", "started"), [(1000, 3, 3), (None, 1, 1), (2, 5, 2), (5, 0, 1)])
def test_no_more_processes_than_there_is_work(
    asked: int | None, calls: int, started: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []

    def parallel(n_jobs: int, **more: Any) -> Callable[[Any], Any]:
        counts.append(n_jobs)
        return lambda delayed: (function(*given) for function, given, _ in delayed)

    monkeypatch.setattr(joblib, "Parallel", parallel)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    assert list(map_in_order(abs, [(-number,) for number in range(calls)], asked)) == list(range(calls))
    assert counts == [started]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_program_loads_is_one_word(number: signal.Signals) -> None:
    program = f"""
import signal, sys
sys.orig_argv, stop = ["mmgen"], type("Stop", (), {{}})()
stop.find_spec = lambda name, *_: signal.raise_signal({int(number)}) if name == "mmgen.cli" else None
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, stop)
from mmgen.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], env=environment(), capture_output=True, text=True)
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    assert (done.returncode, done.stderr) == (128 + number, f"mmgen: {word}\n")
