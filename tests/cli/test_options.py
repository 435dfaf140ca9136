"""Paths from arguments and pipes, and the command as it is recorded."""

import io
import sys
from pathlib import Path

import pytest

from mmgen.cli import _options
from mmgen.core.errors import MmgenError, SettingsError, UsageError
from mmgen.evaluation import EvaluationSettings
from mmgen.settings.config import validate
from mmgen.training.settings import TrainingSettings

ODD = "a\u2028b\x0bc\x85.h5"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.h5", "a b.h5", "c.h5", ODD):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "stdin", "found"),
    [
        (["a.h5"], "", ["a.h5"]),
        (["-"], "\na b.h5\n\n", ["a b.h5"]),
        (["-"], f"{ODD}\n", [ODD]),  # a newline alone ends a path
        (["a.h5", "-"], "c.h5\na b.h5\na.h5\n", ["a.h5", "c.h5", "a b.h5"]),
    ],
    ids=["typed", "one line", "odd", "several"],
)
def test_paths_are_typed_or_come_from_stdin(
    typed: list[str], stdin: str, found: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _options.remember_command_line(["compare", *typed])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    assert _options.read_paths(typed, "dataset") == [Path(name) for name in found]
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    if len(typed) == 1:
        assert _options.read_path(typed[0], "dataset") == Path(found[0])


@pytest.mark.parametrize(
    ("typed", "stdin", "error", "said"),
    [
        (["b.h5"], "", MmgenError, r"there is no dataset at b\.h5"),
        (["-"], "a.h5\nb.h5\n", UsageError, r"- got 2 paths on stdin, 'a\.h5' and 'b\.h5', expected one, of a dataset"),
        (["-"], "", MmgenError, "the command before this one in the pipe failed"),
        (["-"], "\n \n", MmgenError, "the command before this one in the pipe failed"),
        (["-", "-"], "a.h5\n", UsageError, "- stands 2 times in this command, expected once: stdin is read once"),
    ],
)
def test_paths_that_are_none_are_refused_in_a_sentence(
    typed: list[str], stdin: str, error: type[MmgenError], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_options, "_arguments", ["compare", *typed])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    with pytest.raises(error, match=said) as raised:
        _options.read_paths(typed) if len(typed) > 1 else _options.read_path(typed[0], "dataset")
    assert raised.value.exit_code == (2 if error is UsageError else 1)


@pytest.mark.parametrize(
    ("typed", "stdin", "recorded"),
    [
        (["sample", "-", "--given", "digit=3 scale=big"], "a b.h5\n", "sample 'a b.h5' --given 'digit=3 scale=big'"),
        (["compare", "a.h5", "-", "--md"], "c.h5\na.h5\n", "compare a.h5 c.h5 a.h5 --md"),
    ],
)
def test_the_recorded_command_can_be_typed_again(
    typed: list[str], stdin: str, recorded: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _options.remember_command_line(typed)
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    _options.read_paths([word for word in typed if word in ("-", "a.h5")])
    assert _options.command_line() == f"mmgen {recorded}"


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_no_header_holds_is_refused_as_a_setting(seed: int) -> None:
    for schema in (TrainingSettings, EvaluationSettings):
        with pytest.raises(SettingsError, match=rf"training\.seed.*{seed}"):
            validate(schema, {"seed": seed}, "training")
