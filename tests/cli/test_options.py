"""Paths from arguments and pipes, and the command as it is recorded."""

import io
import sys
from pathlib import Path

import pytest

from mmgen.cli import _options
from mmgen.cli._main import main
from mmgen.core.errors import MmgenError, SettingsError, UsageError
from mmgen.evaluation import EvaluationSettings
from mmgen.settings.config import validate
from mmgen.training.settings import TrainingSettings


def feed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_path_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.h5").touch()
    assert _options.read_path(str(tmp_path / "a.h5"), "dataset") == tmp_path / "a.h5"


def test_a_path_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MmgenError, match=r"there is no dataset at .*a\.h5") as raised:
        _options.read_path(str(tmp_path / "a.h5"), "dataset")
    assert raised.value.exit_code == 1


def test_dash_reads_the_one_line_of_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b.h5").touch()
    feed(monkeypatch, f"\n{tmp_path / 'a b.h5'}\n\n")
    assert _options.read_path("-") == tmp_path / "a b.h5"


def test_a_newline_alone_ends_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a\u2028b\x0bc\x85.h5"
    path.touch()
    feed(monkeypatch, f"{path}\n")
    assert _options.read_path("-", "dataset") == path


def test_two_paths_where_one_is_expected_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, "a.h5\nb.h5\n")
    with pytest.raises(UsageError, match=r"- got 2 paths on stdin, 'a\.h5' and 'b\.h5', expected one, of a dataset"):
        _options.read_path("-", "dataset")


def test_several_files_come_from_stdin_where_a_command_takes_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    for path in paths:
        path.touch()
    typed = ["compare", str(paths[0]), "-"]
    monkeypatch.setattr(_options, "_arguments", list(typed))
    monkeypatch.setattr("sys.argv", ["mmgen", *typed])
    feed(monkeypatch, f"{paths[1]}\n{paths[2]}\n{paths[0]}\n")
    assert _options.read_paths(typed[1:], "file of scores") == paths
    assert _options.command_line().split() == ["mmgen", "compare", *map(str, (*paths[:1], *paths[1:], paths[0]))]


def test_stdin_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_options, "_arguments", ["compare", "-", "-"])
    with pytest.raises(UsageError, match="- stands 2 times in this command, expected once: stdin is read once"):
        _options.read_paths(["-", "-"])


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
    [("train", "dataset-v3.h5"), ("fit-aggregate", "model-v3.safetensors"), ("train-classifier", "dataset-v3.h5")],
)
def test_continuing_and_beginning_anew_exclude_each_other(
    command: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, str(GOLDEN / file), "--resume", "--overwrite"])
    assert left.value.code == 2
    words = "--resume and --overwrite got both, expected one of them: continue the saved run or begin anew"
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "dataset-v3.h5", "-n", "3", "--seed", "4"], "--number and --seed is only for contact sheets"),
        (["show", "dataset-v3.h5", "--json", "--seed", "0"], "--seed is only for contact sheets"),
        (
            ["sample", "model-v3.safetensors", "--sampled", "-o", "x.h5"],
            "--sampled got the output x.h5, expected a picture",
        ),
        (["sample", "model-v3.safetensors", "--mean", "-o", "x.h5"], "--mean got the output x.h5, expected a picture"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, name, *options = arguments
    with pytest.raises(SystemExit) as left:
        main([command, str(Path(__file__).parents[1] / "golden" / name), *options])
    written, told = capsys.readouterr()
    assert (left.value.code, written) == (2, "")
    assert said in " ".join(told.split())


def test_a_seed_that_no_header_holds_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["reproduce", "cremer-table1", "--dry-run", "--seed", "9" * 20])
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "") and "--seed" in err and "Traceback" not in err


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_nor_as_a_setting(seed: int) -> None:
    with pytest.raises(SettingsError, match=rf"training\.seed.*{seed}"):
        validate(TrainingSettings, {"seed": seed}, "training")
    with pytest.raises(SettingsError, match=rf"seed.*{seed}"):
        validate(EvaluationSettings, {"seed": seed})
