"""A folder that cannot be written whole is not left in part."""

import errno
import shutil
from pathlib import Path

import pytest

from mmgen.errors import ArtifactError
from mmgen.exporting import _copy


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
        _copy(made, ["a", "b", "c"], out)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(
        ["a", "b", "c", "made", *["out", "mine"] * there]
    )


def test_a_folder_stands_for_what_is_in_it_wherever_a_file_is_named(tmp_path: Path) -> None:
    from mmgen.cli._options import read_path

    assert read_path(str(tmp_path), "file") == tmp_path, "a folder of something else is refused by whoever reads it"
    (tmp_path / "model.safetensors").touch()
    assert read_path(str(tmp_path), "file") == tmp_path / "model.safetensors"
    (tmp_path / "aggregate.safetensors").touch()
    assert read_path(str(tmp_path), "file") == tmp_path / "aggregate.safetensors"
    assert read_path(str(tmp_path), "model") == tmp_path / "model.safetensors"
