"""Fixtures that the tests of several rooms share."""

import os
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# No test is timed: a busy machine is no fault of the code.
settings.register_profile("mmgen", deadline=None)
settings.load_profile("mmgen")

# Contracts say what they found where they are broken.
pytest.register_assert_rewrite("mmgen.testing")

# Packages as somebody else would write them: test_sound.py and test_stranger.py walk through them.
collect_ignore = ["sound", "stranger"]

# What tests verify is no business of the user's cache; programs that they start take the same folder.
_CACHE = tempfile.TemporaryDirectory(prefix="mmgen-cache-")
os.environ["MMGEN_CACHE"] = _CACHE.name
os.environ |= {"HF_HOME": _CACHE.name, "HF_HUB_OFFLINE": "1"}  # nor is the network


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", default="0/1", help="K/N: only the tests whose names fall into share K of N")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.callspec.id in marker.args for marker in item.iter_markers("slow_cases")):
            item.add_marker("slow")
    share, shares = map(int, config.getoption("--share").split("/"))
    items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % shares == share % shares]


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """``call("list", "--json")``: exit code, stdout and stderr of a command in this process."""
    from tests.program import exit_code

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = exit_code(*arguments)
        done = capsys.readouterr()
        return code, done.out, done.err

    return call


def outside_data(name: str) -> Path:
    """A folder of data that the repository does not hold, in $MMGEN_TEST_DATA; skips the test where it is missing."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("MMGEN_TEST_DATA") or beside) / name
    if not folder.is_dir():
        pytest.skip(
            f"there is no folder {folder}; MMGEN_TEST_DATA names the one that holds {name}/ (see CONTRIBUTING.md)"
        )
    return folder


@pytest.fixture(scope="session")
def mnist_folder() -> Path:
    """Folder with the original MNIST files."""
    return outside_data("mnist")


@pytest.fixture(scope="session")
def two_objects_reference() -> Path:
    """Folder with pictures of Two Objects that Cycles rendered with CLEVR's own assets."""
    return outside_data("two-objects-reference")
