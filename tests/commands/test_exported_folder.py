"""A folder that cannot be written whole is not left in part."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from mmgen.artifacts.files import SUMS
from mmgen.commands._exporting import _copy_files, write_export
from mmgen.commands.export import Export
from mmgen.core.errors import ArtifactError, MmgenError


@pytest.mark.parametrize("there", [False, True])
def test_where_the_disk_is_full_only_what_was_there_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    made, out, plain = tmp_path / "made", tmp_path / "out", shutil.copyfile
    made.mkdir()
    for name in ("a", "b", "c"):
        (made / name).write_text("new")
    if there:
        out.mkdir()
        (out / "mine").write_text("old")

    def until_full(source: Path, target: Path) -> None:
        if source.name == "c":
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        plain(source, target)

    monkeypatch.setattr(shutil, "copyfile", until_full)
    with pytest.raises(ArtifactError, match="no space left on device; free some space"):
        write_export(made, ["a", "b", "c"], out)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(
        ["a", "b", "c", "made", *["out", "mine"] * there]
    )


def test_a_folder_stands_for_what_is_in_it_wherever_a_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mmgen.cli._options import read_path

    with pytest.raises(MmgenError, match=r"is a folder, expected a file; name a file"):
        read_path(str(tmp_path), "file")
    (tmp_path / "model.safetensors").touch()
    assert read_path(str(tmp_path), "file") == tmp_path / "model.safetensors"
    (tmp_path / "aggregate.safetensors").touch()
    assert read_path(str(tmp_path), "file") == tmp_path / "aggregate.safetensors"
    assert read_path(str(tmp_path), "model") == tmp_path / "model.safetensors"
    assert read_path(str(tmp_path), "model or aggregate") == tmp_path, "what is made of it lies beside it"
    monkeypatch.chdir(tmp_path)
    assert read_path(".", "model or aggregate") == Path("aggregate.safetensors"), "nothing lies beside ."
    for what, name in {"classifier": "judge.safetensors", "file of scores": "scores.jsonl"}.items():
        with pytest.raises(MmgenError, match=f"is a folder, expected a {what}"):
            read_path(".", what)
        Path(name).touch()
        assert read_path(".", what) == Path(name)


NAMES = ["README.md", "model.safetensors", "samples.png", SUMS]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """What is to be exported, and an earlier export."""
    for folder in (tmp_path / "new", tmp_path / "old"):
        folder.mkdir()
        for name in NAMES:
            (folder / name).write_text(f"{folder.name} {name}")
    return tmp_path / "new", tmp_path / "old"


def test_a_file_that_cannot_be_copied_leaves_the_earlier_export(folders: tuple[Path, Path]) -> None:
    new, old = folders
    (new / "samples.png").unlink()
    with pytest.raises(OSError, match=r"samples\.png"):
        _copy_files(new, NAMES, old)
    assert {path.name: path.read_text() for path in old.iterdir()} == {name: f"old {name}" for name in NAMES}


@pytest.mark.parametrize("after", range(1, len(NAMES)))
def test_an_export_that_is_interrupted_midway_has_no_checksums(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    new, old = folders
    replace = os.replace
    done: list[tuple[Path, ...]] = []

    def interrupted(*paths: Path) -> None:
        if len(done) == after:
            raise KeyboardInterrupt
        replace(*paths)
        done.append(paths)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _copy_files(new, NAMES, old)
    assert sorted(path.name for path in old.iterdir()) == sorted(NAMES[:-1])
    monkeypatch.undo()
    _copy_files(new, NAMES, old)
    assert {path.name: path.read_text() for path in old.iterdir()} == {name: f"new {name}" for name in NAMES}


def test_links_in_the_folder_are_replaced_and_not_followed(folders: tuple[Path, Path]) -> None:
    """Somebody else may have made the folder; with --overwrite we write into it."""
    new, old = folders
    precious = old.parent / "precious"
    precious.write_text("before")
    for name, target in zip(
        NAMES, (precious, Path("model.safetensors"), old.parent / "nothing", precious), strict=True
    ):
        (old / name).unlink()
        (old / name).symlink_to(target) if name != SUMS else os.link(target, old / name)
    _copy_files(new, NAMES, old)
    assert {path.name: path.read_text() for path in old.iterdir()} == {name: f"new {name}" for name in NAMES}
    assert not any(path.is_symlink() for path in old.iterdir())
    assert precious.read_text() == "before" and not (old.parent / "nothing").exists()


def test_what_cannot_be_replaced_is_told_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmgen.generation.load", lambda path: pytest.fail("it is loaded"))
    os.mkfifo(tmp_path / "README.md")
    with pytest.raises(ArtifactError, match=r"README.md: it is a pipe, which would be replaced"):
        Export(tmp_path / "m.safetensors", tmp_path, overwrite=True).run()
