"""The command below the next steps: it names files as they are from here, and the command line takes it."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from mmgen.artifacts import Header
from mmgen.cli._main import load_command
from mmgen.evaluation.next_steps import advise
from mmgen.results.score import Score

IDS = {"model": "m", "aggregate": "a", "judge": "j", "dataset": "d"}
MODALITIES = {
    "attributes": {"kind": "attributes", "names": ["shape", "hue"], "values": [["big star", "ring"], ["red"]]}
}
READ = {"shape": 100.0, "mean": 100.0}


def header(kind: str, command: str = "", **settings: Any) -> Header:
    return Header(kind, 1, "0", "0" * 64, 0, {"data": {"modalities": MODALITIES}, **settings}, (), {}, command)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, tuple[Path, Header]]:
    """The files of a run in another folder than the current one."""
    for name in ("data.h5", "model.safetensors", "aggregate.safetensors", "judge.safetensors"):
        (tmp_path / name).touch()
    train = "mmgen train data.h5 --preset quickstart/pictures --steps 2500 --seed 0 -o model.safetensors"
    fit = "mmgen fit-aggregate model.safetensors --output=aggregate.safetensors --family realnvp"
    steps = {"training": {"steps": 2500, "minutes": None}}
    return {
        "m": (tmp_path / "model.safetensors", header("model", train, **steps)),
        "a": (tmp_path / "aggregate.safetensors", header("aggregate", fit, training={"steps": 1000})),
        "j": (tmp_path / "judge.safetensors", header("classifier")),
        "d": (tmp_path / "data.h5", header("dataset")),
    }


def score(value: float, drawn: float = 100.0, metric: str = "correctness", given: int = 2, **others: Any) -> Score:
    values = {"ids": IDS, "judge_accuracy": READ, "by_attribute": {"shape": drawn}} | others
    return Score(metric, metric, value, 1.0, "%", "higher", 9, values.pop("posterior", "aggregate"), given, **values)


OPEN = score(60.0, metric="agreement", given=1, details={"ceiling": 99.0, "below_ceiling": 39.0})
GUIDED = {"posterior": "guided", "base": "aggregate", "guidance": 3.0}
CASES = {
    "train": ([score(80.0, 60.0)], "train {0}/data.h5 --preset quickstart/pictures --seed 0 --steps 5000 "
              "-o {0}/model-5000.safetensors"),
    "fit": ([score(99.0), OPEN], "fit-aggregate {0}/model.safetensors --family realnvp --steps 2000 "
            "-o {0}/aggregate-2000.safetensors"),
    "read": ([score(68.0, 68.0, judge_accuracy={"shape": 70.0, "mean": 70.0})],
             "show {0}/judge.safetensors -o misread.png"),
    "draw": ([score(99.0)], "sample {0}/aggregate.safetensors --given 'shape=big star'"),
    "guided": ([score(90.0), score(99.0, **GUIDED, guidance_method="")],
               "sample {0}/aggregate.safetensors --guidance 3 --given 'shape=big star'"),
    "steered": ([score(90.0), score(99.0, **GUIDED, guidance_method="cfg:start=0.2")],
                "sample {0}/aggregate.safetensors --guidance cfg:3:start=0.2 --given 'shape=big star'"),
    "prior": ([score(20.0, 20.0, posterior="prior", ids={"model": "m"})], "fit-aggregate {0}/model.safetensors"),
    "judge": ([score(1.0, metric="copies", judge_accuracy=None)], "train-classifier {0}/data.h5"),
    "copies": ([score(9.0, metric="copies", protocol="pixels", details={"low": 7.0, "ceiling": 1.0}), score(99.0)],
               "plot copies {0}/aggregate.safetensors"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_command_of_the_weakest_number_can_be_typed(case: str, files: Any, tmp_path: Path) -> None:
    scores, expected = CASES[case]
    advice = advise(scores, files)
    assert advice.command == f"mmgen {expected.format(tmp_path)}"
    _, name, *arguments = shlex.split(advice.command)
    load_command(name).make_context(name, arguments)
    assert str(advice).splitlines()[0] == "What to look at next, weakest first:"
    assert str(advice).splitlines()[-1] == f"Type now: {advice.command}" and len(str(advice).splitlines()) <= 6


def test_larger_pictures_are_the_command_where_the_judge_cannot_read_small_ones(files: Any) -> None:
    scores = [score(60.0, 60.0, judge_accuracy={"shape": 70.0, "mean": 70.0})]
    assert advise(scores, files, "mmgen quickstart --images x --size 64").command.endswith("--size 64")


def test_files_that_are_not_at_hand_leave_the_sentences_alone(files: Any) -> None:
    advice = advise([score(80.0, 60.0)], {})
    assert advice.lines and not advice.command and "Type now" not in str(advice)
    path, made = files["m"]
    python = {"m": (path, Header(**{**made.__dict__, "command": ""}))}
    assert advise([score(80.0, 60.0)], python).command == "", "a model that was trained from Python"
    assert str(advise([], files)) == ""


@pytest.mark.parametrize("command", ["mmgen train 'data.h5", "rm -rf data.h5", "mmgen train data.h5; rm -rf /"])
def test_commands_of_strangers_are_quoted_or_left_out(command: str, files: Any, tmp_path: Path) -> None:
    path, made = files["m"]
    files["m"] = (path, Header(**{**made.__dict__, "command": command}))
    found = advise([score(80.0, 60.0)], files).command
    assert found in ("", f"mmgen train 'data.h5;' rm -rf / --steps 5000 -o {tmp_path}/model-5000.safetensors")


@pytest.mark.parametrize("role", ["m", "a"])
def test_a_command_that_runs_a_file_of_python_is_not_repeated(role: str, files: Any) -> None:
    path, made = files[role]
    files[role] = (path, Header(**{**made.__dict__, "command": f"{made.command} --code=payload.py"}))
    scores = [score(80.0, 60.0)] if role == "m" else [score(99.0), OPEN]
    advice = advise(scores, files)
    assert "payload" not in str(advice) and advice.lines[-1].startswith("The command of this training runs a file of")


@pytest.mark.parametrize("modalities", [{"a": 1}, {"a": {"kind": "attributes", "names": 3, "values": [["x"]]}}, [], {}])
def test_headers_of_another_form_have_no_command(modalities: Any, files: Any) -> None:
    path, made = files["a"]
    files["a"] = (path, Header(**{**made.__dict__, "settings": {"data": {"modalities": modalities}}}))
    assert advise([score(99.0)], files).command == ""
