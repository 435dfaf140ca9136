"""Running the program as a user does."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run("list", "--json", stdin="...")``: a real process in an empty folder, its output captured."""

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from mmgen.cli._main import main; main()", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=tmp_path, timeout=120)

    return run
