"""Paths from arguments and pipes, and the command as it is recorded."""

import io
import sys
from pathlib import Path

import pytest

from mmgen.cli import _options
from mmgen.cli._main import main
from mmgen.errors import MmgenError


def feed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_path_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.h5").touch()
    assert _options.read_path(str(tmp_path / "a.h5"), "dataset") == tmp_path / "a.h5"


def test_a_path_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MmgenError, match=r"there is no dataset at .*a\.h5") as raised:
        _options.read_path(str(tmp_path / "a.h5"), "dataset")
    assert raised.value.exit_code == 1


def test_dash_reads_the_last_line_of_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b.h5").touch()
    feed(monkeypatch, f"noise\n{tmp_path / 'a b.h5'}\n\n")
    assert _options.read_path("-") == tmp_path / "a b.h5"


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_empty_stdin_says_that_the_stage_before_failed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, text)
    with pytest.raises(MmgenError, match="the command before this one in the pipe failed"):
        _options.read_path("-", "model")


def test_the_recorded_command_can_be_typed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my model").touch()
    monkeypatch.chdir(tmp_path)
    _options.remember_command_line(["sample", "-", "--given", "digit=3 scale=big"])
    feed(monkeypatch, "my model\n")
    _options.read_path("-")
    assert _options.command_line() == "mmgen sample 'my model' --given 'digit=3 scale=big'"


GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize(
    ("command", "file"),
    [("train", "dataset-v2.h5"), ("fit-aggregate", "model-v2.safetensors"), ("train-classifier", "dataset-v2.h5")],
)
def test_continuing_and_beginning_anew_exclude_each_other(
    command: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, str(GOLDEN / file), "--resume", "--overwrite"])
    assert left.value.code == 2
    words = "--resume and --overwrite got both, expected one of them: continue the saved run or begin anew"
    assert words in " ".join(capsys.readouterr().err.split())
