"""Without what Python has on Linux and macOS alone; a real Windows is not tested."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mmgen.settings.presets import preset_names
from tests.program import TINY, environment

LIKE_WINDOWS = """
import json, os, signal, sys
for name in ("fcntl", "grp", "posixshmem", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("O_NOFOLLOW", "O_NONBLOCK", "getloadavg", "sched_getaffinity", "sysconf"):
    delattr(os, name)
for name in ("SIGALRM", "SIGHUP", "SIGKILL"):
    delattr(signal, name)
os.environ["LOKY_MAX_CPU_COUNT"] = "1"  # which joblib asks Windows for
from mmgen.cli._main import main
for command in json.loads(sys.argv[1]):
    try:
        main(command)
    except SystemExit as left:
        if left.code:
            sys.exit(left.code)
"""
FITTED = "m-aggregate-realnvp.safetensors"
STAGES = [
    ["make-data", "shapes", "--number", "200", "--size", "32", "--workers", "1", "-o", "d.h5"],
    ["train", "d.h5", "--objective", "telbo", "--steps", "3", "-o", "m.safetensors", *TINY],
    ["fit-aggregate", "m.safetensors", "--steps", "3"],
    ["train-classifier", "d.h5", "--steps", "3", "-o", "judge.safetensors"],
    ["sample", FITTED, "--given", "shape=heart", "-n", "2"],
    ["eval", FITTED, "--metric", "correctness", "--judge", "judge.safetensors", "-o", "s.jsonl"],
    ["explore", FITTED, "-o", "explore.html"],
    ["export", FITTED, "shared"],
    ["status", "."],
    ["env"],
]
FORBIDDEN = re.compile(r'[<>:"\\|?*\x00-\x1f]|[. ]$|^(aux|con|nul|prn|com\d|lpt\d)(\.|$)', re.IGNORECASE)
"""In a name on Windows."""


def run_like_windows(folder: Path, *commands: list[str]) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-P", "-c", LIKE_WINDOWS, json.dumps(commands)]
    return subprocess.run(words, cwd=folder, env=environment(1), text=True, capture_output=True, check=False)


def test_help(tmp_path: Path) -> None:
    done = run_like_windows(tmp_path, ["--help"])
    assert done.returncode == 0 and "quickstart" in done.stdout, done.stderr


@pytest.mark.slow
def test_runs_of_several_stages_say_what_they_lack_and_what_to_type(tmp_path: Path) -> None:
    done = run_like_windows(tmp_path, ["quickstart", "--output", "q"])
    assert done.returncode == 1 and "no locks of files" in done.stderr.splitlines()[-1], done.stderr
    assert list(tmp_path.iterdir()) == []
    done = run_like_windows(tmp_path, ["quickstart", "--output", "q", "--dry-run"])
    assert (done.returncode, "mmgen make-data shapes" in done.stdout) == (0, True), done.stderr


@pytest.mark.slow
def test_every_stage_with_names_that_windows_takes(tmp_path: Path) -> None:
    done = run_like_windows(tmp_path, *STAGES)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    names = {path.name for path in tmp_path.rglob("*")}
    assert {FITTED, FITTED.replace(".safetensors", "-samples.png"), "s.jsonl", "explore.html", "README.md"} <= names
    assert [name for name in names if FORBIDDEN.search(name)] == []


def test_files_named_after_presets_are_names_that_windows_takes() -> None:
    assert [name for name in preset_names() if FORBIDDEN.search(name.rpartition("/")[2])] == []
