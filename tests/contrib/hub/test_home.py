"""The folder of the hub's library, where it cannot be used."""

import subprocess
from pathlib import Path

import pytest

from tests.own_data._obeying import CASES
from tests.program import MMGEN, environment


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
def test_a_home_that_is_not_there_is_named_and_not_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    nowhere = tmp_path / "file"
    nowhere.touch()
    words = [*MMGEN, "make-data", "hub", str(CASES / "parquet-of-pandas"), "--size", "16", "-o", str(tmp_path / "h.h5")]
    variables = {**environment(), "HF_HOME": str(nowhere / "cache")}
    done = subprocess.run(words, env=variables, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("mmgen: cannot use ") == 1
    assert "name it by the variable HF_HOME" in done.stderr and "parquet-of-pandas:" not in done.stderr
