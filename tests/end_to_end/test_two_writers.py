"""Two commands at once that write one file: whatever the command, one of them has it, and the other one ends with 1."""

import contextlib
import io
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mmgen.artifacts import files
from mmgen.artifacts.containers import require_kind
from mmgen.artifacts.lineage import read_lineage
from tests.program import TINY, exit_code, mmgen

PRESET = "vedantam/telbo-mnist-a-cpu"
BASELINE = ["baseline", "d.h5", "--method", "logistic"]
TRAIN = ["train", "d.h5", "--objective", "telbo", *TINY]
WRITERS: dict[str, Sequence[str]] = {
    "made.h5": ["make-data", "shapes", "--number", "50", "--size", "16", "--workers", "1"],
    "q.safetensors": [*TRAIN, "--steps", "8"],
    "j.safetensors": ["train-classifier", "d.h5", "--network", "small", "--steps", "4"],
    "a.safetensors": ["fit-aggregate", "m.safetensors", "--family", "gaussian", "--steps", "4"],
    "scores.jsonl": ["eval", "m.safetensors", "--metric", "parameters"],
    "drawn.png": ["sample", "m.safetensors", "-n", "2"],
    "drawn.h5": ["sample", "m.safetensors", "-n", "2"],
    "shown.png": ["show", "d.h5"],
    "baseline.jsonl": [*BASELINE, "--preset", PRESET, "--paired", ".5", "--attribute", "digit"],
    "folder": ["export", "m.safetensors"],
    "folder.zip": ["export", "m.safetensors"],
    "report.html": ["report", "m.safetensors"],
    "explore.html": ["explore", "m.safetensors", "--number", "2"],
    "plot.png": ["plot", "reconstructions", "m.safetensors"],
}  # fmt: skip


def write(words: Sequence[str], folder: Path, barrier: Any, done: Any) -> None:
    """Run a command that waits, once it has looked at its output, until the other one has looked too."""
    real, output, waiting = files._identify, words[words.index("-o") + 1] if "-o" in words else words[2], [True]

    def look(path: Path) -> tuple[int, ...] | None:
        found = real(path)
        if path.name == output and waiting:
            waiting.clear()
            barrier.wait(120)
        return found

    files._identify = look
    os.chdir(folder)
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = exit_code(*words)
    done.put((code, said.getvalue()))


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    mmgen(folder, *TRAIN, "--steps", "10", "-o", "m.safetensors")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("output", WRITERS)
def test_the_second_of_two_commands_loses_nothing_and_ends_with_1(model: Path, output: str) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.end_to_end.test_two_writers", "mmgen.cli._main", "mmgen.generation"])
    barrier, done = context.Barrier(2), context.Queue()
    both = []
    for seed in (1, 2):
        words = [*WRITERS[output], "--seed", str(seed)]
        words[2:2] = [output] if words[0] == "export" else []
        words += [] if words[0] == "export" else ["-o", output]
        both.append(context.Process(target=write, args=(words, model, barrier, done)))
    for one in both:
        one.start()
    ended = sorted(done.get(timeout=240) for _ in both)
    for one in both:
        one.join()
    (first, _), (second, said) = ended
    assert (first, second) == (0, 1), ended
    sentence = said[said.index("mmgen: ") :]
    assert "\n" not in sentence.strip(), said
    if output == "q.safetensors" or "which trains under the same name" in sentence:
        assert (model / "q.log.jsonl").exists()
    else:
        kept = Path(output).with_stem(f"{Path(output).stem}-2") if "." in output else Path(f"{output}-2")
        assert f"{output} was written by another command" in sentence and (model / kept).exists() == (
            "what this one made" in sentence
        )
    if output.endswith((".h5", ".safetensors")):
        header = require_kind(model / output, "dataset", "model", "classifier", "aggregate", "samples")
        assert f"-o {output}" in header.command and read_lineage(model / output).is_present
    assert not [name for name in os.listdir(model) if name.endswith(".part")]
