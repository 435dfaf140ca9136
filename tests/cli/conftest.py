"""Running the program as a user does, in this process: starting one takes longer."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import within

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run("list", "--json", stdin="...")``: in an empty folder, its output captured."""

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return within(tmp_path, *arguments, given=stdin)

    return run
