"""The files that the tests of the program start from."""

from pathlib import Path

import pytest

from tests.program import mmgen


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small dataset and a judge."""
    folder = tmp_path_factory.mktemp("pipeline")
    digits = ["--source", "digits", "--size", "32", "--number", "1500", "--workers", "1"]
    assert mmgen(folder, "make-data", "mnist-a", *digits, "-o", "d.h5") == "d.h5\n"
    judged = mmgen(folder, "train-classifier", "d.h5", "--network", "small", "--steps", "30", "-o", "judge.safetensors")
    assert judged == "judge.safetensors\n"
    return folder
