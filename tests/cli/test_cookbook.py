"""The recipes for shells run as they are printed, with fewer steps."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import ROOT, within

TINY = ["--objective", "elbo", "--steps", "5", "--set", "model.latent_size=4"]
RECIPES = re.findall(
    r"^## (\d+\. .*?)\n(.*?)(?=^## |\Z)", (ROOT / "docs" / "cookbook.md").read_text("utf-8"), re.S | re.M
)
MAKES = {
    "1": ["shapes-elbo-seed2-aggregate-realnvp-scores.jsonl"], "2": ["z16-aggregate-realnvp-scores.jsonl"],
    "3": ["run1.safetensors"], "4": ["scores.jsonl"], "5": [], "6": ["now.jsonl"],
    "7": ["long.safetensors", "log"], "8": ["limited.safetensors"], "9": ["words.txt", "sheet.png"],
    "10": ["shapes/model.safetensors", "star.png"],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the recipes begin with, and a program ``mmgen``."""
    made = tmp_path_factory.mktemp("cookbook")
    for line in (
        ["make-data", "shapes", "--number", "300", "--size", "16", "--workers", "1", "-o", "shapes.h5"],
        ["train-classifier", "shapes.h5", "--steps", "5", "--network", "small", "-o", "judge.safetensors"],
        ["train", "shapes.h5", *TINY, "-o", "model.safetensors"],
        ["fit-aggregate", "model.safetensors", "--steps", "5", "-o", "aggregate.safetensors"],
    ):
        done = within(made, *line)
        assert done.returncode == 0, done.stderr
    (made / "bin").mkdir()
    (made / "bin" / "mmgen").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mmgen "$@"\n')
    (made / "bin" / "mmgen").chmod(0o755)
    return made


def _run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a recipe in bash, with few steps and queries."""
    less = re.sub(r"--steps \d+", "--steps 5 --batch 16", script).replace("--queries 200", "--queries 8 --draws 1")
    less = less.replace("seq 0 3", "seq 0 1").replace("8 16 32", "8 16")
    environment = {
        **os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(folder),
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", less], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_there_are_ten() -> None:
    assert [title.partition(".")[0] for title, _ in RECIPES] == [str(n) for n in range(1, 11)] == [*MAKES]


@pytest.mark.slow
@pytest.mark.parametrize(("title", "text"), RECIPES, ids=[title.partition(".")[0] for title, _ in RECIPES])
def test_a_recipe_runs_as_it_is_printed(folder: Path, tmp_path: Path, title: str, text: str) -> None:
    here = tmp_path / "runs"
    shutil.copytree(folder, here)
    number = title.partition(".")[0]
    blocks = dict(re.findall(r"^```(sh|make|cron)\n(.*?)^```$", text, re.S | re.M))
    if makefile := blocks.get("make"):
        few = re.sub(r"--steps \d+", "--steps 5 --batch 16", makefile).replace("--queries 200", "--queries 8 --draws 1")
        (here / "Makefile").write_text(few)
        for old in here.glob("*.safetensors"):
            old.unlink()
    script = blocks.get("sh") or blocks["cron"].split(" ", 5)[5].replace("$HOME/runs", "$HOME")
    for need in ("jq", "flock", "make"):
        if need in script and shutil.which(need) is None:
            pytest.skip(f"{need} is not installed")
    if number == "6":
        low = _run(here, script)
        assert low.returncode == 1 and low.stdout.strip() == "false", "five steps are far below 80 %"
        script = script.replace("> 80", ">= 0")
    done = _run(here, script)
    assert done.returncode == 0, done.stderr[-3000:]
    for name in MAKES[number]:
        assert (here / name).stat().st_size > 0, done.stderr[-3000:]
    if number == "5":  # a file is missing: out of date
        (here / "shapes.h5").unlink()
        assert _run(here, "mmgen status --exit-code").returncode == 1


@pytest.mark.slow
def test_gnu_parallel_takes_the_line_of_its_recipe(folder: Path, tmp_path: Path) -> None:
    if shutil.which("parallel") is None:
        pytest.skip("GNU parallel is not installed")
    (line,) = re.findall(r"^# or: (.*)$", RECIPES[2][1], re.M)
    here = tmp_path / "runs"
    shutil.copytree(folder, here)
    done = _run(here, line.replace("0 1 2 3", "0 1"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert (here / "run1.safetensors").exists()
