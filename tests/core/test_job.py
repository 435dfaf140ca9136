"""What a job is granted: the smallest limit from its own control group up, in both versions; affinity."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mmgen.core import job, processes
from tests.program import environment


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(job, "_TREE", tmp_path / "cgroup")
    monkeypatch.setattr(job, "_MEMBERSHIP", tmp_path / "self")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(8)}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    return tmp_path


def write(tree: Path, files: dict[str, str], membership: str) -> None:
    for name, text in files.items():
        (tree / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / "cgroup" / name).write_text(f"{text}\n")
    (tree / "self").write_text(membership)


NEW, OLD = "0::/slice/job\n", "9:memory:/slice/job\n3:cpu,cpuacct:/slice/job\n1:name=systemd:/\n"


@pytest.mark.parametrize(
    ("files", "membership", "memory", "cores"),
    [
        ({}, "", None, 8),
        ({"memory.max": "max", "cpu.max": "max 100000"}, NEW, None, 8),
        ({"slice/job/memory.max": "400", "slice/memory.max": "300", "memory.max": "900"}, NEW, 300, 8),
        ({"slice/job/cpu.max": "max 100000", "slice/cpu.max": "250000 100000"}, NEW, None, 3),
        ({"cpu.max": "50000 100000", "memory.max": "7"}, "0::/\n", 7, 1),
        ({"memory/slice/job/memory.limit_in_bytes": "400"}, OLD, 400, 8),
        ({"cpu/slice/cpu.cfs_quota_us": "100000", "cpu/slice/cpu.cfs_period_us": "100000"}, OLD, None, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, OLD, None, 8),
        ({"memory/memory.limit_in_bytes": "5", "cpu/cpu.cfs_quota_us": "x"}, "9:memory:/docker/elsewhere\n", 5, 8),
        ({}, "no such form", None, 8),
    ],
)  # fmt: skip
def test_the_smallest_limit_of_all_levels_holds(
    tree: Path, files: dict[str, str], membership: str, memory: int | None, cores: int
) -> None:
    write(tree, files, membership)
    assert (job.granted_memory(), job.granted_cores()) == (memory, cores)


def test_affinity_counts(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree, {"cpu.max": "700000 100000"}, NEW)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5}, raising=False)
    assert job.granted_cores() == 2


@pytest.mark.parametrize(("typed", "expected"), [(None, "2"), ("6", "6")])
def test_libraries_take_no_more_threads_than_are_granted_unless_somebody_says_so(
    tree: Path, monkeypatch: pytest.MonkeyPatch, typed: str | None, expected: str
) -> None:
    write(tree, {"slice/cpu.max": "150000 100000"}, NEW)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for name in ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
        monkeypatch.setenv(name, typed or "")
        if typed is None:
            monkeypatch.delenv(name)
    processes.limit_threads()
    assert (os.environ["OMP_NUM_THREADS"], os.environ["LOKY_MAX_CPU_COUNT"]) == (expected, expected)


_SCRIPT = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import torch
torch.set_num_threads(7)
from mmgen.training.own_loop import resolve_device
resolve_device("cpu")
print(torch.get_num_threads())
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
@pytest.mark.skipif(os.cpu_count() == 1, reason="there is one processor")
def test_a_script_computes_with_as_many_threads_as_it_is_granted() -> None:
    variables = {name: value for name, value in environment().items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", _SCRIPT], env=variables, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr
