"""No page, picture or table is written over an artifact, nor over what it is made from."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mmgen.artifacts.pages import check_page
from mmgen.core.errors import UsageError
from tests.figures.test_trade_off import example
from tests.program import exit_code
from tests.worlds import added


@pytest.fixture
def files(world: Path, tmp_path: Path) -> Path:
    for name in ("data.h5", "flat.safetensors", "judge.safetensors", "scores.jsonl"):
        shutil.copy(world / name, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "out"),
    [
        (["eval", "flat.safetensors", "--metric", "coverage"], "data.h5"),
        *(row for rows in added("LOST") for row in rows),
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
    assert exit_code(*arguments, "-o", out) == 2
    written, said = capfd.readouterr()
    assert written == ""
    assert f"{out}: " in said and "would be lost; choose another name" in said
    assert before == {path: path.read_bytes() for path in files.iterdir()}


def test_samples_and_pages_replace_their_own_kind(
    files: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    for out in ("grid.png", "s.h5", "s.h5"):
        assert exit_code("sample", "flat.safetensors", "-n", 1, "-o", out) == 0
    assert exit_code("show", "s.h5", "--json", "-o", "grid.png") == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["kind"] == "samples"


@pytest.mark.parametrize("kind", ["report", "explore"])
@pytest.mark.parametrize("name", ["x.pdf", "x", "x.txt"])
def test_a_page_has_the_ending_of_one(kind: Any, name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"--output got .*ending in .html, for a page of mmgen {kind}"):
        check_page(tmp_path / name, kind, overwrite=True)
    check_page(tmp_path / "x.HTML", kind, overwrite=False)


@pytest.mark.parametrize(
    ("arguments", "out"),
    [
        (["report", "flat.safetensors"], "thesis.html"),
        (["report", "flat.safetensors"], "explored.html"),
        *(row for rows in added("NOT_OURS") for row in rows),
        (["plot", "curves", "flat.safetensors"], "photo.png"),
        (["plot", "curves", "flat.safetensors"], "drawn.svg"),
        (["show", "data.h5"], "photo.png"),
        (["sample", "flat.safetensors"], "photo.png"),
    ],
)
def test_what_mmgen_did_not_make_is_replaced_only_if_told(
    files: Path, arguments: list[str], out: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    before = {"thesis.html": b"<h1>mine</h1>", "drawn.svg": b"<svg></svg>", "photo.png": picture(),
              "explored.html": b'<meta charset="utf-8"><meta name="generator" content="mmgen explore">'}  # fmt: skip
    Path(out).write_bytes(before[out])
    assert exit_code(*arguments, "-o", out) == 2
    written, said = capfd.readouterr()
    assert written == "" and "so it would be lost; use another --output, or --overwrite" in said
    assert Path(out).read_bytes() == before[out]


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "png")
    return buffer.getvalue()


@pytest.mark.slow_cases("trade-off.png")
@pytest.mark.parametrize("out", ["trade-off.png", "trade-off.svg", "trade-off.pdf"])
def test_a_figure_replaces_its_own_kind_and_others_if_told(
    tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scores = example(tmp_path)
    Path(out).write_bytes(b"mine")
    assert exit_code("plot", "trade-off", scores, "-o", out, "--overwrite") == 0
    check_page(Path(out), "picture", overwrite=False)  # says that it is ours
    made = Path(out).read_bytes()
    if out.endswith(".png"):
        assert exit_code("plot", "trade-off", scores, "-o", out) == 0
        assert Path(out).read_bytes() == made


@pytest.mark.slow
def test_a_page_replaces_its_own_kind(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    for command in (["report", "scores.jsonl"], ["explore", "flat.safetensors", "--number", 1]):
        Path(f"{command[0]}.html").write_text("mine")
        assert [exit_code(*command, *more) for more in ((), ("--overwrite",), ())] == [2, 0, 0]
