"""Stages form a real pipe: each prints the path of what it made and nothing else, or stops with one sentence."""

import contextlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mmgen.artifacts import read_header
from tests.program import MMGEN, ROOT, TINY, environment, mmgen, within

NOTING = (
    "import atexit, sys; atexit.register(lambda: open('loaded', 'w').write(' '.join(sys.modules)));"
    "from mmgen.cli._main import main; main()"
)
"""The program, which leaves the names of what it has loaded."""


def test_stages_compose_in_a_pipe(folder: Path) -> None:
    """train | fit-aggregate | eval, run by a shell; the last stage prints JSON lines, the others a path each.

    What they made is drawn from by a command, and by the Python of the README.
    """
    stages = [
        ["train", "-", "--objective", "elbo", "--steps", "40", *TINY],
        ["fit-aggregate", "-", "--steps", "30", "--examples", "500"],
        ["eval", "-", "--metric", "correctness", "--metric", "coverage", "--queries", "8", "--draws", "4", "--json"],
    ]
    programs = [MMGEN, MMGEN, [sys.executable, "-c", NOTING]]
    pipe = " | tee -a paths | ".join(shlex.join([*one, *stage]) for one, stage in zip(programs, stages, strict=True))
    command = ["bash", "-c", f"set -o pipefail; echo d.h5 | {pipe}"]
    scored = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment(), check=False)
    assert scored.returncode == 0, scored.stderr
    made = ["d-elbo.safetensors", "d-elbo-aggregate-realnvp.safetensors"]
    assert (folder / "paths").read_text().splitlines() == made
    lines = [json.loads(line) for line in scored.stdout.splitlines()]
    assert {line["metric"] for line in lines} == {"correctness", "coverage"}
    keys = {"value", "stderr", "unit", "better", "n", "given", "protocol", "posterior", "judge_accuracy"}
    for line in lines:
        assert keys <= line.keys()
        assert line["n"] > 0
    # What only training needs takes as long to load as torch itself.
    loaded = set((folder / "loaded").read_text().split())
    assert "torch" in loaded and not loaded & {"lightning_fabric", "torch._dynamo"}
    (folder / "scores.jsonl").write_text(scored.stdout)
    assert mmgen(folder, "sample", made[1], "--given", "digit=3 scale=big", "-n", 4, "-o", "grid.png") == "grid.png\n"
    assert (folder / "grid.png").read_bytes()[:4] == b"\x89PNG"
    assert mmgen(folder, "report", made[1], "scores.jsonl", "-o", "report.html") == "report.html\n"
    (example,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
    with contextlib.chdir(folder):
        example = example.replace("shape=heart colour=red", "digit=3 scale=big").replace("red heart", "big 3")
        exec(re.sub(r'"[^" ]*\.safetensors"', repr(made[1]), example), {})
    header = read_header(folder / made[1])
    assert {parent.role for parent in header.parents} == {"model", "latents", "dataset"}


@pytest.mark.slow
def test_digits_of_28_pixels_need_no_settings(tmp_path: Path) -> None:
    digits = ["--source", "digits", "--size", "28", "--number", "300", "--workers", "1"]
    mmgen(tmp_path, "make-data", "mnist-a", *digits, "-o", "d.h5")
    options = ["--objective", "elbo", "--steps", "2", "--batch", "8", "--device", "cpu"]
    assert mmgen(tmp_path, "train", "d.h5", *options) == "d-elbo.safetensors\n"
    assert len(mmgen(tmp_path, "sample", "d-elbo.safetensors", "-n", 2, "-o", "two.png")) > 0


def test_a_failed_stage_stops_the_pipe_with_one_sentence(folder: Path) -> None:
    failed = within(folder, "fit-aggregate", "-", given="")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "the command before" in failed.stderr


def test_a_missing_parent_is_named_with_the_command_that_makes_it(folder: Path, tmp_path: Path) -> None:
    mmgen(folder, "train", "d.h5", "--objective", "elbo", "--steps", "20", *TINY, "-o", "orphan.safetensors")
    moved = tmp_path / "orphan.safetensors"
    moved.write_bytes((folder / "orphan.safetensors").read_bytes())
    done = within(tmp_path, "fit-aggregate", moved)
    assert done.returncode == 1
    assert "mmgen make-data mnist-a --source digits" in done.stderr
