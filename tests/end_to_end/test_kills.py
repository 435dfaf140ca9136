"""Real processes, ended in the middle of their work: nothing half is left, and the same command again continues."""

import random
import signal
import time
from pathlib import Path

import pytest
import torch

from mmgen.artifacts import Dataset, read_checkpoint, read_header
from tests.program import TINY, assert_same_run, mmgen, started, wait_for_step

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
    assert_made_as_if_uninterrupted(tmp_path)
