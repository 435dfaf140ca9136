"""Fixtures that the tests of several rooms share."""

from pathlib import Path

import pytest
from hypothesis import settings

# No test is timed: a busy machine is no fault of the code.
settings.register_profile("mmgen", deadline=None)
settings.load_profile("mmgen")


@pytest.fixture(scope="session")
def mnist_folder() -> Path:
    """Folder with the original MNIST files, kept beside the repository; skips where they are not there."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "mnist"
    if not folder.is_dir():
        pytest.skip(f"the MNIST files are not at {folder}")
    return folder
