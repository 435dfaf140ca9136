"""``mmgen make-data`` as a user runs it: what it prints, how it fails, and what it leaves when it is stopped."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mmgen.artifacts import Dataset
from tests.program import within

# A shell starts background jobs with SIGINT ignored, and tests may run in one; a user's Ctrl-C meets the usual handler.
_PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from mmgen.cli._main import main; main()"
)
COMMAND = [sys.executable, "-c", _PROGRAM, "make-data"]


def run(*arguments: object, cwd: Path, **options) -> subprocess.CompletedProcess[str]:
    """A real process."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300, **options)


def sentence(stderr: str) -> str:
    """The last line of stderr, which must be mmgen's one sentence and no traceback."""
    assert "Traceback" not in stderr
    last = stderr.strip().split("\n")[-1]
    assert last.startswith("mmgen: ")
    return last


@pytest.mark.slow
def test_stdout_holds_the_path_only(small_mnist, tmp_path):
    done = run("mnist-a", "--mnist", small_mnist, "--number", 40, "--size", 32, "--workers", 1, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "mnist-a.h5\n")
    assert "making mnist-a" in done.stderr
    with Dataset.open(tmp_path / "mnist-a.h5") as dataset:
        assert dataset.size == 40
        assert dataset.images["image"].shape == (1, 32, 32)
        assert dataset.images["image"].layout == "bits"
        assert dataset.header.command.startswith("mmgen make-data mnist-a --mnist")


def test_options_reach_the_recipe(small_mnist, tmp_path):
    options = ["--source", "digits", "--grey", "--copies", 1, "--set", "size=16", "--seed", 7, "-o", "other.h5"]
    done = within(tmp_path, "make-data", "mnist-2bit", *options, "--workers", 2)
    assert (done.returncode, done.stdout) == (0, "other.h5\n")
    with Dataset.open(tmp_path / "other.h5") as dataset:
        assert dataset.size == 1797
        assert dataset.header.seed == 7
        assert dataset.images["image"].shape == (1, 16, 16)
        assert dataset.images["image"].layout == "bytes"
        assert np.unique(dataset.read_image("image", slice(0, 10))).size > 10


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["mnist-b"], 2, "did you mean 'mnist-a'"),
        (["mnist-a", "--size", "3"], 2, "setting 'size'"),
        (["mnist-a", "--source", "svhn"], 2, "'mnist' or 'digits'"),
        (["mnist-a", "--set", "sizes=3"], 2, "did you mean 'size'"),
        (["mnist-a", "--source", "digits", "--mnist", "nowhere"], 2, "--source got digits, but --mnist names a folder"),
        (["mnist-a", "--mnist", "nowhere"], 1, "there is no folder nowhere"),
        (["mnist-a", "--mnist", "SMALL", "-o", "no/such/folder/x.h5"], 1, "no/such/folder"),
        (["mnist-a", "--mnist", "SMALL", "-o", "."], 1, "directory"),
        (["multimnist", "--dynamic"], 2, "--dynamic is not for multimnist"),
        (["celeba-18", "--set", "sigma=2"], 2, "unknown setting 'sigma'"),
        (["binary-mnist", "--grey"], 2, "--grey is not for binary-mnist, which is black and white"),
        (["celeba-transforms", "--set", "sigma=nan"], 2, "--set got 'sigma=nan', but nan is not a finite number"),
        (["two-objects", "--colours", "blue,grey"], 2, "did you mean 'gray'"),
        (["two-objects", "--render", "nowhere.json"], 1, "cannot read the scenes in nowhere.json"),
    ],
)
def test_mistakes_end_in_one_sentence(small_mnist, tmp_path, arguments, code, complaint):
    arguments = [small_mnist if argument == "SMALL" else argument for argument in arguments]
    done = within(tmp_path, "make-data", *arguments, "--workers", 1)
    assert (done.returncode, done.stdout) == (code, "")
    assert complaint in sentence(done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_dataset_is_not_replaced(small_mnist, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    done = within(tmp_path, "make-data", "mnist-a", "--mnist", small_mnist, "--workers", 1, "-o", "notes.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot write a dataset to notes.txt" in sentence(done.stderr)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder_is_named(small_mnist, tmp_path):
    tmp_path.chmod(0o500)
    done = run("mnist", "--mnist", small_mnist, "--workers", 1, cwd=tmp_path)
    tmp_path.chmod(0o700)
    assert (done.returncode, done.stdout) == (1, "")
    assert "ermission denied" in sentence(done.stderr)


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_leaves_nothing(small_mnist, tmp_path):
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    arguments = ["mnist-a", "--mnist", small_mnist, "--number", 4000, "--workers", 1, "-o", "d.h5"]
    done = run(*arguments, cwd=tmp_path, preexec_fn=little_room)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot write d.h5" in sentence(done.stderr)
    assert list(tmp_path.iterdir()) == []


class _Running:
    """A long make-data in a session of its own, as a terminal would start it; its file is being written."""

    def __init__(self, mnist: Path, folder: Path, after: float, recipe: str = "mnist-a") -> None:
        own = {"mnist-a": ["--mnist", str(mnist)], "two-objects": ["--size", "16", "--samples", "1"]}[recipe]
        arguments = [recipe, *own, "--number", "3000000", "--workers", "2", "-o", "d.h5"]
        self._talk = (folder.parent / f"{folder.name}.err").open("w+")
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=self._talk, start_new_session=True
        )
        while not list(folder.glob(".d.h5.*")):
            assert self.process.poll() is None
            time.sleep(0.02)
        time.sleep(after)

    def ended(self) -> tuple[int, bytes, str]:
        stdout, _ = self.process.communicate(timeout=60)
        self._talk.seek(0)
        with self._talk:
            return self.process.returncode, stdout, self._talk.read()

    def group_is_gone(self, seconds: float) -> bool:
        """Whether every process of the session ends soon."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            states = [
                stat.rsplit(")", 1)[1].split()
                for path in Path("/proc").glob("[0-9]*/stat")
                if (stat := _read(path)) is not None
            ]
            if not any(fields[2] == str(self.process.pid) and fields[0] != "Z" for fields in states):
                return True
            time.sleep(0.1)
        return False


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None  # ended meanwhile


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")


@needs_proc
@pytest.mark.parametrize(
    ("recipe", "after"),
    [
        pytest.param("mnist-a", 0.0, marks=pytest.mark.slow),
        ("mnist-a", 1.0),
        pytest.param("two-objects", 1.5, marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_ends_with_130_and_leaves_nothing(small_mnist, tmp_path, recipe, after):
    running = _Running(small_mnist, tmp_path, after, recipe)
    os.killpg(running.process.pid, signal.SIGINT)
    code, stdout, stderr = running.ended()
    assert (code, stdout) == (130, b"")
    assert "mmgen: interrupted" in stderr and "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []
    assert running.group_is_gone(20)


@pytest.mark.slow
@needs_proc
def test_termination_ends_with_143_and_leaves_nothing(small_mnist, tmp_path):
    running = _Running(small_mnist, tmp_path, 1.0)
    running.process.terminate()
    code, stdout, stderr = running.ended()
    assert (code, stdout) == (143, b"")
    assert "nothing was written" in sentence(stderr)
    assert list(tmp_path.iterdir()) == []
    assert running.group_is_gone(20)


@needs_proc
@pytest.mark.parametrize(
    "after", [pytest.param(0.0, marks=pytest.mark.slow), 0.4, pytest.param(1.7, marks=pytest.mark.slow)]
)
def test_killed_at_any_moment_it_leaves_no_half_file_and_no_process(small_mnist, tmp_path, after):
    running = _Running(small_mnist, tmp_path, after)
    running.process.kill()
    code, stdout, _ = running.ended()
    assert (code, stdout) == (-signal.SIGKILL, b"")
    assert not (tmp_path / "d.h5").exists()
    assert all(path.name.startswith(".d.h5.") for path in tmp_path.iterdir())
    assert running.group_is_gone(20)
    # The same command again is not hindered by what the killed one left.
    done = run("mnist-a", "--mnist", small_mnist, "--number", 40, "--workers", 1, "-o", "d.h5", cwd=tmp_path)
    assert done.returncode == 0
    with Dataset.open(tmp_path / "d.h5") as dataset:
        assert dataset.size == 40
