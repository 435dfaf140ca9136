"""Running the program: as real processes where that is what a test is about, else inside this one, which is faster."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import torch

from mmgen.artifacts import read_checkpoint
from mmgen.cli._main import main
from mmgen.core.processes import STOP_SIGNALS
from mmgen.settings import plugins

MMGEN = [sys.executable, "-m", "mmgen"]
ROOT = Path(__file__).resolve().parents[1]
TINY = [
    "--set", "model.image_network.channels=[8,8]", "--set", "model.hidden=32", "--set", "model.latent_size=4",
    "--set", "model.attribute_network.hidden=16", "--set", "model.attribute_network.decoder_hidden=16",
    "--set", "model.image_network.fully_connected=[16]", "--batch", "16",
    "--set", "training.validate_every=20", "--set", "training.validation_examples=64",
    "--set", "training.log_every=5", "--device", "cpu",
]  # fmt: skip


def instead(words: list[str], option: str, value: str) -> list[str]:
    """Words of a command with another value of one option, which may stand there only once."""
    place = words.index(option) + 1
    return [*words[:place], value, *words[place + 1 :]]


def environment(threads: int | None = None) -> dict[str, str]:
    """For a real process; by default with as many threads as this one, so that sums are added up in the same order."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(threads or torch.get_num_threads())}


def started(folder: Path, *arguments: str, threads: int | None = None) -> "subprocess.Popen[str]":
    """A real ``mmgen`` at work."""
    return subprocess.Popen(
        [*MMGEN, *arguments], cwd=folder, env=environment(threads), text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def within(folder: Path, *arguments: object, given: str = "") -> "subprocess.CompletedProcess[str]":
    """``mmgen`` in this process, as in the folder: exit code and output as of a real one.

    The environment, files of ``--code`` and handlers of signals are afterwards what they were.
    """
    out, err, stdin = io.StringIO(), io.StringIO(), sys.stdin
    words = [str(argument) for argument in arguments]
    sys.stdin = io.StringIO(given)
    code: object = None
    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.dict(os.environ),
            mock.patch.object(plugins, "_files", {}),
        ):
            main(words)
    except SystemExit as left:
        code = left.code
    finally:
        sys.stdin = stdin
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def exit_code(*arguments: object) -> int:
    """Exit code of ``mmgen`` in this process, where we are; what it prints is left to ``capsys``."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as left:
        return int(left.code or 0)
    raise AssertionError("the program did not end")


def mmgen(folder: Path, *arguments: object, given: str = "") -> str:
    """What a command that must succeed prints; see :func:`within`."""
    done = within(folder, *arguments, given=given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for_step(process: "subprocess.Popen[str]", log: Path, step: int) -> None:
    """Return as soon as the log of a training names a step of at least that much."""
    while not (log.exists() and any(one >= step for one in logged_steps(log))):
        if process.poll() is not None:
            raise AssertionError(f"the training ended before step {step}: {process.communicate()[1]}")
        time.sleep(0.005)


def logged_steps(log: Path) -> list[int]:
    """Steps that the whole lines of a log name."""
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line)["step"] for line in lines if line.endswith("\n")]


def assert_same_run(folder: Path, one: str, other: str) -> None:
    """Weights, moments and log of two trainings are the same, bit for bit."""
    for tail in (".safetensors", ".last.safetensors"):
        (header, tensors), (header_2, tensors_2) = (read_checkpoint(folder / f"{name}{tail}") for name in (one, other))
        assert tensors.keys() == tensors_2.keys()
        assert all(tensors[key].equal(tensors_2[key]) for key in tensors)
        if header.kind == "training-state":  # the id of a state covers how long it took
            first, second = ({**found.facts, "seconds": 0.0} for found in (header, header_2))
            assert first == second
        else:
            assert header.content_id == header_2.content_id
    assert logged_steps(folder / f"{one}.log.jsonl") == logged_steps(folder / f"{other}.log.jsonl")
