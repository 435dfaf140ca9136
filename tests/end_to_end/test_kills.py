"""Real processes, ended in the middle of their work: nothing half is left, and the same command again continues."""

import contextlib
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch

from mmgen.artifacts import Dataset, read_checkpoint, read_header
from tests.program import MMGEN, TINY, assert_same_run, environment, instead, mmgen, started, wait_for_step, within

LIST = Path(__file__).parents[1] / "lists" / "two-objectives.toml"
STEPS = 120
STRIDED: list[str] = []
SHEETS = [
    "--set", "model.image_network.name=spatial-transformer", "--set", "model.image_network.sheet=12",
    "--set", "model.image_network.fully_connected=[16,16]", "--set", "model.image_network.features=[16]",
]  # fmt: skip
"""The network of the presets for CPUs."""
LEAVING = {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130, signal.SIGTERM: 143}
"""Exit code by signal."""


def training(name: str, steps: int, *settings: str) -> list[str]:
    return [
        "train", "d.h5", "--objective", "telbo", "--steps", str(steps), *TINY, *settings, "--keep-state",
        "-o", f"{name}.safetensors",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def whole(folder: Path) -> str:
    """Name of a training that nothing interrupted."""
    mmgen(folder, *training("whole", STEPS))
    return "whole"


def ended_in_the_middle(folder: Path, name: str, number: int, settings: list[str], threads: int | None = None) -> str:
    """Begin a training, send the signal once it has validated twice, check how it left; returns what it said."""
    process = started(folder, *training(name, STEPS, *settings), threads=threads)
    wait_for_step(process, folder / f"{name}.log.jsonl", 45)
    process.send_signal(number)
    out, said = process.communicate()
    assert process.returncode == LEAVING[signal.Signals(number)], said
    assert out == ""
    read_checkpoint(folder / f"{name}.safetensors")  # whole
    header, _ = read_checkpoint(folder / f"{name}.last.safetensors", "training-state")
    assert 0 < header.facts["step"] < STEPS
    assert not header.facts["finished"]
    return said


# SIGTERM takes the way of SIGINT.
SIGNALS = [pytest.param(n, marks=pytest.mark.slow) if n == signal.SIGTERM else n for n in LEAVING]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_training_ended_by_a_signal_continues_bit_for_bit(folder: Path, whole: str, number: int) -> None:
    name = f"ended{int(number)}"
    said = ended_in_the_middle(folder, name, number, STRIDED)
    if number == signal.SIGKILL:
        assert "Traceback" not in said
    else:
        assert "stopped at step" in said
        assert f"saved {name}.last.safetensors" in said
    mmgen(folder, *training(name, STEPS))
    assert_same_run(folder, whole, name)


@pytest.mark.slow
def test_the_network_for_cpus_continues_bit_for_bit_on_two_threads(folder: Path) -> None:
    threads = torch.get_num_threads()
    ended_in_the_middle(folder, "sheets", signal.SIGKILL, SHEETS, threads=2)
    try:
        torch.set_num_threads(2)
        for name in ("sheets", "whole-sheets"):
            mmgen(folder, *training(name, STEPS, *SHEETS))
    finally:
        torch.set_num_threads(threads)
    assert_same_run(folder, "whole-sheets", "sheets")


@pytest.mark.slow
@pytest.mark.long
def test_random_kills_of_training_never_leave_half_a_file(folder: Path) -> None:
    generator, steps, kills = random.Random(0), 2_000, 0
    mmgen(folder, *training("uninterrupted", steps))
    for _ in range(8):
        process = started(folder, *training("random", steps))
        time.sleep(generator.uniform(2, 15))
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        for path in folder.glob("random*.safetensors"):
            read_checkpoint(path)  # whole, or not there
    assert kills > 0
    mmgen(folder, *training("random", steps))
    assert_same_run(folder, "uninterrupted", "random")


DIGITS = ["make-data", "mnist-a", "--source", "digits", "-o", "d.h5"]


def one_kill(folder: Path, delay: float, *settings: str) -> bool:
    """Begin a dataset and kill it a while after its file appeared, under its hidden name; whether it came to that."""
    process = started(folder, *DIGITS, *settings)
    while not list(folder.glob(".d.h5.*.part")) and process.poll() is None:
        time.sleep(0.002)
    time.sleep(delay)
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


def assert_made_as_if_uninterrupted(folder: Path, *settings: str) -> None:
    """Run the command to its end, and compare with a run in a folder of its own."""
    (folder / "other").mkdir()
    assert mmgen(folder, *DIGITS, *settings) == "d.h5\n"
    mmgen(folder / "other", *DIGITS, *settings)
    with Dataset.open(folder / "d.h5") as dataset:
        dataset.verify()
        assert dataset.header.content_id == read_header(folder / "other" / "d.h5").content_id


def test_a_killed_make_data_leaves_no_file_and_runs_again(tmp_path: Path) -> None:
    settings = ["--number", "3000", "--workers", "1"]
    assert one_kill(tmp_path, 0.0, *settings)
    assert not (tmp_path / "d.h5").exists()
    assert_made_as_if_uninterrupted(tmp_path, *settings)


@pytest.mark.slow
def test_random_kills_of_make_data_never_leave_half_a_file(tmp_path: Path) -> None:
    generator = random.Random(1)
    kills = 0
    for _ in range(6):
        kills += one_kill(tmp_path, generator.uniform(0, 5), "--workers", "2")
        if (tmp_path / "d.h5").exists():
            with Dataset.open(tmp_path / "d.h5") as dataset:
                dataset.verify()
    assert kills > 0
    assert_made_as_if_uninterrupted(tmp_path, "--workers", "2")  # the last of them may have come to its end


def members_of(group: int) -> list[int]:
    """Processes of a group that are not only waiting to be noticed."""
    listed = subprocess.run(["ps", "-eo", "pid=,pgid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, of, state in rows if int(of) == group and not state.startswith("Z")]


WORKING: dict[str, list[str]] = {
    "workers": [*DIGITS, "--number", "60000", "--workers", "2"],
    "stages": ["reproduce", str(LIST), "--jobs", "2", "-o", "r"],
    "devices": [*training("both", 10_000), "--devices", "2"],
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WORKING)
@pytest.mark.parametrize("number", LEAVING)
def test_nobody_is_left_two_seconds_after_a_command_has_ended(
    folder: Path, tmp_path: Path, what: str, number: int
) -> None:
    (tmp_path / "d.h5").symlink_to(folder / "d.h5")
    words = [word.replace("d.h5", "new.h5") for word in WORKING[what]] if what == "workers" else WORKING[what]
    process = started(tmp_path, *words)
    while len(members_of(process.pid)) < 2 and process.poll() is None:
        time.sleep(0.1)
    try:
        time.sleep(1)
        assert process.poll() is None, process.communicate()[1]
        process.send_signal(number)
        process.wait(60)
        until = time.monotonic() + 2
        while members_of(process.pid) and time.monotonic() < until:
            time.sleep(0.05)
        assert not members_of(process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == LEAVING[signal.Signals(number)], said
    assert "Traceback" not in said
    assert number == signal.SIGKILL or said.splitlines()[-1].startswith("mmgen: ")


@pytest.mark.slow
def test_a_second_device_that_cannot_start_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nif os.environ.get('LOCAL_RANK') == '1': os._exit(7)\n")
    own = environment()
    own["PYTHONPATH"] += os.pathsep + str(tmp_path)
    command = [*MMGEN, *training("alone", 100), "--devices", "2"]
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("mmgen: process 2 of 2 (--devices) ended with exit code 7, and this run with it; ")
    assert "Traceback" not in done.stderr and not (folder / "alone.safetensors").exists()


@pytest.mark.parametrize(
    ("devices", "batch", "said"),
    [
        ("100000", "16", r"--devices got 100000, expected at most \d+ processes on the \d+ core"),
        ("2", "1", "--devices got 2 and --batch 1, expected an example at least for each"),
    ],
)
def test_devices_without_work_are_refused_before_any_is_started(
    folder: Path, devices: str, batch: str, said: str
) -> None:
    done = within(folder, *instead(training("none", 10), "--batch", batch), "--devices", devices)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(said, done.stderr) and done.stderr.count("\n") == 1
