"""No page, picture or table is written over an artifact, nor over what it is made from."""

import json
import shutil
from pathlib import Path

import pytest


def _mmgen(*arguments: object) -> int:
    from mmgen.cli._main import main

    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture
def files(world: Path, tmp_path: Path) -> Path:
    for name in ("data.h5", "flat.safetensors", "judge.safetensors", "scores.jsonl"):
        shutil.copy(world / name, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "out"),
    [
        (["eval", "flat.safetensors", "--metric", "coverage"], "data.h5"),
        (["baseline", "data.h5"], "flat.safetensors"),
        (["plot", "curves", "flat.safetensors"], "flat.safetensors"),
        (["report", "flat.safetensors", "scores.jsonl"], "scores.jsonl"),
        (["show", "flat.safetensors"], "data.h5"),
        (["sample", "flat.safetensors"], "data.h5"),
        (["sample", "flat.safetensors", "--from", "flat.png", "--to", "image"], "flat.png"),
    ],
)
def test_what_would_be_lost_is_refused(
    files: Path, arguments: list[str], out: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    Path("flat.png").write_bytes(b"a picture")
    before = {path: path.read_bytes() for path in files.iterdir()}
    assert _mmgen(*arguments, "-o", out) == 2
    written, said = capfd.readouterr()
    assert written == ""
    assert f"{out}: it " in said and "would be lost; choose another name" in said
    assert before == {path: path.read_bytes() for path in files.iterdir()}


def test_samples_and_pages_replace_their_own_kind(
    files: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    Path("grid.png").write_bytes(b"another picture")
    for out in ("grid.png", "s.h5", "s.h5"):
        assert _mmgen("sample", "flat.safetensors", "-n", 1, "-o", out) == 0
    assert _mmgen("show", "s.h5", "--json", "-o", "grid.png") == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["kind"] == "samples"
