"""Folders of runs: made with those above them, and gone again where nothing came of them."""

import os
from pathlib import Path

import pytest

from mmgen.cli._stages import create_output_folder
from mmgen.core.errors import MmgenError


def leave_in_error(folder: Path, *files: str, notes: tuple[str, ...] = ()) -> None:
    def run() -> None:
        with create_output_folder(folder, notes):
            for name in files:
                (folder / name).touch()
            raise KeyError

    with pytest.raises(KeyError):
        run()


def test_what_ends_well_keeps_its_folder(tmp_path: Path) -> None:
    with create_output_folder(tmp_path / "a" / "b"):
        pass
    assert (tmp_path / "a" / "b").is_dir()


def test_an_error_takes_what_was_created_and_is_empty(tmp_path: Path) -> None:
    leave_in_error(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()
    (tmp_path / "a").mkdir()
    leave_in_error(tmp_path / "a" / "b")
    assert (tmp_path / "a").exists() and not (tmp_path / "a" / "b").exists()


@pytest.mark.parametrize(
    ("files", "stays"), [(("notes",), False), (("result",), True), (("notes", "result"), True), ((), False)]
)
def test_notes_are_nothing_without_a_result(tmp_path: Path, files: tuple[str, ...], stays: bool) -> None:
    leave_in_error(tmp_path / "a", *files, notes=("notes",))
    assert (tmp_path / "a").exists() == stays
    assert not stays or sorted(os.listdir(tmp_path / "a")) == sorted(files)


def test_folders_that_were_there_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    leave_in_error(tmp_path / "a", "notes", notes=("notes",))
    assert os.listdir(tmp_path / "a") == ["notes"]


@pytest.mark.parametrize("name", ["file", "file/below", "n" * 300, "new/" + "n" * 300])
def test_what_cannot_be_a_folder_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    refused = pytest.raises(MmgenError, match=r"cannot use the folder .*; choose another with --output")
    with refused, create_output_folder(tmp_path / name):
        pass
    assert os.listdir(tmp_path) == ["file"]
