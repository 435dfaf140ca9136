"""A place that cannot be used is called what it is."""

import os
from pathlib import Path
from unittest import mock

import pytest

from mmgen.cli._main import _run_command_line
from mmgen.commands.export import Export
from mmgen.core.errors import UsageError


@pytest.fixture(params=["file", "pipe"])
def no_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "out"
    if request.param == "pipe":
        os.mkfifo(path)
    else:
        path.write_text("precious")
    return path


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_export_to_what_is_no_folder(overwrite: bool, no_folder: Path) -> None:
    with pytest.raises(UsageError, match="out is there and is no folder; choose another name"):
        Export(Path("m"), no_folder, overwrite=overwrite).run()


def test_a_current_folder_that_was_removed(capfd: pytest.CaptureFixture[str]) -> None:
    with mock.patch("mmgen.cli._main.os.getcwd", side_effect=FileNotFoundError):
        assert _run_command_line(["list"]) == 1
    assert "the current folder was removed; change to another one (cd)" in capfd.readouterr().err
