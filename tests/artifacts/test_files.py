"""Whole or not at all: atomic writes, killed writers, folders and disks that refuse."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from mmgen.artifacts import DatasetWriter, atomic_path, write_checkpoint, write_text_atomic
from mmgen.core.errors import ArtifactError

WRITERS = {
    "latents": (
        "write_latents(path, mean=noise[:, :10], log_sd=noise[:, 10:], rows=np.arange(len(noise)),"
        " columns={'attributes': np.zeros((len(noise), 1), np.uint8)}, split='train', settings={}, seed=0)"
    ),
    "dataset": "dataset(path)",
}

PRELUDE = """
import resource, sys
from pathlib import Path
import numpy as np
from mmgen.artifacts import *
from mmgen.core.errors import ArtifactError
path = Path(sys.argv[1])
noise = np.random.default_rng(0).random((10_000, 20))

def dataset(path, size=20_000, wait=None):
    rows = np.random.default_rng(0).integers(0, 256, (1000, 1, 16, 16), dtype=np.uint8)
    with DatasetWriter(path, size, {}, 0) as writer:
        writer.add_image("image", (1, 16, 16))
        for start in range(0, size, 1000):
            writer.write(start, {"image": rows})
            if wait is not None and start == wait:
                print("writing", flush=True)
"""


def test_text_is_written_and_replaced(tmp_path):
    path = tmp_path / "notes.txt"
    write_text_atomic(path, "one")
    write_text_atomic(path, "två")
    assert path.read_text(encoding="utf-8") == "två"
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_temporary_file_is_hidden_and_beside_the_final_one(tmp_path):
    final = tmp_path / ("long" * 60)
    with atomic_path(final) as path:
        assert path.parent == tmp_path
        assert path.name.startswith(".")
        assert not final.exists()
        path.write_text("x")
    assert final.read_text() == "x"


def _write_and_fail(path, error):
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        raise error


@pytest.mark.parametrize("error", [RuntimeError("bug"), KeyboardInterrupt()])
def test_an_error_leaves_the_older_file(tmp_path, error):
    path = tmp_path / "notes.txt"
    write_text_atomic(path, "old")
    with pytest.raises(type(error)):
        _write_and_fail(path, error)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_nothing_is_an_error(tmp_path):
    with pytest.raises(ArtifactError, match="no such file"), atomic_path(tmp_path / "x"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_killed_writers_go_after_a_day(tmp_path):
    old, fresh, other = (tmp_path / name for name in (".x.h5.aaaa.part", ".x.h5.bbbb.part", ".y.h5.cccc.part"))
    for path in (old, fresh, other):
        path.write_text("half")
    for path in (old, other):
        os.utime(path, (time.time() - 100_000,) * 2)
    write_text_atomic(tmp_path / "x.h5", "whole")
    assert not old.exists()
    assert fresh.exists()
    assert other.exists()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no space left on device; free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EROFS, "read-only file system; choose a folder that you may write to"),
        (errno.EACCES, "permission denied; choose a folder that you may write to"),
        (errno.EIO, "check the disk"),
    ],
)
def test_what_the_file_system_says_becomes_one_sentence(tmp_path, number, words):
    path = tmp_path / "x.h5"
    with pytest.raises(ArtifactError) as caught, atomic_path(path):
        raise OSError(number, os.strerror(number))
    assert str(caught.value).startswith(f"cannot write {path}: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [FileNotFoundError(errno.ENOENT, "no", "/data/source.gz"), ConnectionResetError(104, "reset")]
)
def test_errors_of_other_files_stay_what_they_are(tmp_path, error):
    with pytest.raises(type(error)), atomic_path(tmp_path / "x"):
        raise error


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("missing/x.h5", "there is no folder .*missing; make it first"),
        ("file/x.h5", "choose a path in a folder"),
        ("folder", "is a directory; choose the name of a file"),
        ("n" * 300, "choose a shorter name"),
    ],
)
@pytest.mark.parametrize("how", ["text", "dataset"])
def test_impossible_places(tmp_path, place, words, how):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    path = tmp_path / place
    # A dataset must be refused when it is begun, before hours of work on it.
    begin = DatasetWriter(path, 1, {}, 0).__enter__ if how == "dataset" else lambda: write_text_atomic(path, "x")
    with pytest.raises(ArtifactError, match=words):
        begin()


@pytest.mark.skipif(not Path("/sys").is_dir(), reason="no /sys, a folder that nobody may write to")
def test_folder_that_nobody_may_write_to():
    # Even root cannot make a file there, so the test does not depend on who runs it.
    with pytest.raises(ArtifactError, match=r"cannot write /sys/x\.h5: .*; choose a"):
        write_text_atomic(Path("/sys/x.h5"), "x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ArtifactError, match="permission denied; choose a folder that you may write to"):
            write_text_atomic(tmp_path / "x", "x")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize("what", WRITERS)
@pytest.mark.parametrize("limit", [1000, 400_000])
def test_a_disk_that_takes_no_more(tmp_path, what, limit):
    """In a process of its own: HDF5 used to crash the interpreter at exit after a write that failed."""
    path = tmp_path / "x"
    path.write_text("old")
    script = PRELUDE + f"""
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
try:
    {WRITERS[what]}
except ArtifactError as error:
    print(error)
"""  # fmt: skip
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"cannot write {path}: file too large; choose a folder that takes files of this size\n"
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_text_atomic(path, "x" * 2_000_000),
        lambda path: write_checkpoint(path, kind="model", tensors={"w": torch.zeros(10**6)}, settings={}, seed=0),
    ],
)
def test_a_disk_that_takes_no_more_text_or_tensors(tmp_path, write):
    import resource

    path = tmp_path / "x"
    path.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        with pytest.raises(ArtifactError, match="file too large; choose a folder that takes files of this size"):
            write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def _write_zeros(path: Path) -> None:
    with DatasetWriter(path, 5000, {}, 0) as writer:
        writer.add_image("image", (1, 16, 16))
        for start in range(0, 5000, 1000):
            writer.write(start, {"image": np.zeros((1000, 1, 16, 16), np.uint8)})


def test_an_interrupt_while_hdf5_writes_comes_out(tmp_path, monkeypatch):
    real, calls = os.write, []

    def interrupted(descriptor: int, data: memoryview) -> int:
        calls.append(len(data))
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _write_zeros(tmp_path / "x.h5")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("wait", [0, 3000, 15000, 19000])
def test_a_killed_writer_leaves_no_final_name(tmp_path, wait):
    path = tmp_path / "x.h5"
    script = PRELUDE + f"dataset(path, wait={wait})"
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    # After the last rows the writer may have finished before the signal came; then the file must be whole.
    if path.exists():
        from mmgen.artifacts import Dataset

        with Dataset.open(path) as dataset:
            dataset.verify()
    else:
        assert all(left.name.startswith(".x.h5.") for left in tmp_path.iterdir())
