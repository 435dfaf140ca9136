"""Lists of stages: they can be typed, what is there is used only if it fits, the paper's numbers stand beside ours."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

from cli._main import command_names, load_command
from mmgen import reproductions
from mmgen.artifacts import DatasetWriter, read_header, reference, write_checkpoint
from mmgen.errors import ArtifactError, SettingsError, UsageError
from mmgen.metrics._base import Score
from mmgen.reproductions._comparison import compare, judge_sentence, markdown, table_of
from mmgen.reproductions._plan import Plan, Stage, read_plan, script, state_of, with_data
from mmgen.training.state import state_path

PLANS = [(name, scale) for name in reproductions.names() for scale in ("cpu", "paper")]


@pytest.mark.parametrize(("name", "scale"), PLANS)
def test_every_command_can_be_typed_and_names_what_it_makes(name: str, scale: str) -> None:
    stages = read_plan(name).at(scale).stage
    made: list[str] = []
    for stage in stages:
        command, *arguments = stage.arguments
        assert command in command_names()
        load_command(command).make_context(command, list(arguments))
        assert arguments[arguments.index("-o") + 1] == stage.makes
        files = {word for word in arguments if word.endswith((".h5", ".safetensors", ".jsonl"))}
        assert files - {stage.makes} <= set(made), "a stage uses only what earlier ones make"
        made.append(stage.makes)


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_tables_share_data_judge_and_model(scale: str) -> None:
    one, two = (read_plan(f"cremer-table{number}").at(scale) for number in (1, 2))
    assert one.folder == two.folder
    assert one.stage[:3] == two.stage[:3]


def test_both_posteriors_of_table_1_are_treated_alike() -> None:
    for scale in ("cpu", "paper"):
        commands = {stage.makes: stage.command for stage in read_plan("cremer-table1").at(scale).stage}
        true, aggregate = commands["q-true.safetensors"], commands["q-agg.safetensors"]
        assert true.replace("target true", "target aggregate").replace("q-true", "q-agg") == aggregate
        true, aggregate = commands["table1-true.jsonl"], commands["table1-agg.jsonl"]
        alike = true.replace("posterior true", "posterior aggregate").replace("q-true", "q-agg")
        assert alike.replace("table1-true", "table1-agg") == aggregate


def test_numbers_are_those_of_the_paper() -> None:
    """CK Tables 1 and 2, Two Objects."""
    published = [{row.name: row.paper for row in read_plan(name).row if row.paper} for name in reproductions.names()]
    assert [list(rows.values()) for rows in published] == [
        [(72.75, 87.01), (75716.48, 75739.79)],
        [(65.62, 83.81), (75715.36, 75726.15), (-19.43, -17.40)],
    ]


def test_script_is_what_would_be_run(tmp_path: Path) -> None:
    plan = read_plan("cremer-table2")
    scale = plan.at("cpu")
    lines = script(plan, scale, tmp_path / "a b").splitlines()
    assert [line for line in lines if line.startswith("mmgen")] == [stage.command for stage in scale.stage]
    assert f"cd {shlex.quote(str(tmp_path / 'a b'))}" in lines
    assert all(line == "" or line[0] == "#" or line.split()[0] in ("set", "mkdir", "cd", "mmgen") for line in lines)


def test_a_dataset_of_ones_own_takes_the_place_of_the_lists(tmp_path: Path) -> None:
    scale = with_data(read_plan("cremer-table1").at("cpu"), tmp_path / "my scenes.h5")
    assert scale.stage[0].makes == "judge.safetensors"
    assert scale.stage[0].arguments[1] == str(tmp_path / "my scenes.h5")
    assert not any("two-objects.h5" in stage.arguments for stage in scale.stage)


def test_faults_of_a_list_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'cremer-table"):
        read_plan("cremer-table")
    with pytest.raises(UsageError, match=r"unknown scale 'gpu'.*cpu, paper"):
        read_plan("cremer-table1").at("gpu")
    own = tmp_path / "mine.toml"
    text = reproductions.text_of("cremer-table1")
    own.write_text(text)
    assert read_plan(str(own)) == read_plan("cremer-table1")
    own.write_text(text.replace("makes =", "maks =", 1))
    with pytest.raises(SettingsError, match="maks"):
        read_plan(str(own))
    own.write_text(text.replace("mmgen make-data", "rm make-data", 1))
    with pytest.raises(SettingsError, match="begins with mmgen"):
        read_plan(str(own))
    own.write_text(text.replace("[72.75, 87.01]", "[72.75]", 1))
    with pytest.raises(SettingsError, match="one posterior and number for each"):
        read_plan(str(own))


def write_data(path: Path, level: int = 0) -> None:
    with DatasetWriter(path, size=3, settings={"recipe": "toy"}, seed=0, command="make") as writer:
        writer.add_image("image", shape=(1, 2, 2), layout="bytes")
        writer.write(0, images={"image": np.full((3, 1, 2, 2), level, np.uint8)})
        writer.add_splits("iid", train=np.array([0]), val=np.array([1]), test=np.array([2]))


def write_model(path: Path, data: Path, kind: str = "model", finished: bool | None = None) -> None:
    tensors, common = {"w": torch.zeros(1)}, {"settings": {}, "seed": 0, "command": "train"}
    write_checkpoint(path, kind=kind, tensors=tensors, parents=(reference(data, "dataset", path),), facts={}, **common)
    if finished is not None:
        facts = {"finished": finished}
        write_checkpoint(state_path(path), kind="training-state", tensors=tensors, parents=(), facts=facts, **common)


TRAIN = Stage(why="", command="mmgen train data.h5 -o model.safetensors", makes="model.safetensors")
EVAL = Stage(why="", command="mmgen eval model.safetensors -o scores.jsonl", makes="scores.jsonl")
EARLIER = ["data.h5", "model.safetensors"]


def test_what_is_there_is_used_only_if_it_fits(tmp_path: Path) -> None:
    data, model, scores = (tmp_path / name for name in ("data.h5", "model.safetensors", "scores.jsonl"))
    make = Stage(why="", command="mmgen make-data x -o data.h5", makes="data.h5")
    assert state_of(make, tmp_path, []) == "missing"
    write_data(data)
    assert state_of(make, tmp_path, []) == "done"
    assert state_of(TRAIN, tmp_path, ["data.h5"]) == "missing"
    write_model(model, data, finished=False)
    assert state_of(TRAIN, tmp_path, ["data.h5"]) == "unfinished"
    write_model(model, data, finished=True)
    assert state_of(TRAIN, tmp_path, ["data.h5"]) == "done"
    for text in ("", "no json", '{"metric": "a"}', json.dumps({"ids": {"model": "another"}})):
        scores.write_text(text)
        assert state_of(EVAL, tmp_path, EARLIER) == "outdated"
    scores.write_text(json.dumps({"ids": {"model": read_header(model).content_id, "dataset": "d"}}))
    assert state_of(EVAL, tmp_path, EARLIER) == "done"
    data.unlink()
    write_data(data, level=7)
    with pytest.raises(ArtifactError, match=r"made from another data.h5 .* remove model.safetensors"):
        state_of(TRAIN, tmp_path, ["data.h5"])


def score(posterior: str, value: float, protocol: str = "paper", metric: str = "correctness") -> Score:
    quantity = "correctness" if metric == "correctness" else "log p(x|y)"
    accuracy = {"colour_1": 98.0, "mean": 95.0, "words": 95.56} if metric == "correctness" else None
    return Score(metric, quantity, value, 0.3, "%", "higher", 6000, posterior, 9, protocol, accuracy)


def test_gains_of_likelihoods_are_paired_by_point() -> None:
    plan = read_plan("cremer-table1")
    points = {"split": "iid", "part": "test", "seed": 0}
    of = {
        "true": Score("log-likelihood", "log p(x|y)", 400.0, 173.2, "nats", "higher", 3, "true", protocol="bound"),
        "aggregate": Score(
            "log-likelihood", "log p(x|y)", 410.0, 173.2, "nats", "higher", 3, "aggregate", protocol="bound"
        ),
    }
    of["true"].extra.update(points, values=[100.0, 400.0, 700.0])
    of["aggregate"].extra.update(points, values=[109.0, 410.0, 711.0])
    gain = compare(plan, list(of.values()))[2].gain
    assert gain == (10.0, pytest.approx(1 / 3**0.5))
    of["aggregate"].extra["seed"] = 1  # other points
    assert compare(plan, list(of.values()))[2].gain == (10.0, pytest.approx(173.2 * 2**0.5))


def test_comparison_by_hand(tmp_path: Path) -> None:
    plan: Plan = read_plan("cremer-table1")
    scores = [score("true", 70.0), score("aggregate", 81.5), score("true", 60.0, "exact")]
    scores.append(score("aggregate", 30_000.5, "bound", "log-likelihood"))
    compared = compare(plan, scores)
    columns, rows = table_of(plan, compared)
    assert columns[:3] == ["", "paper: q_true(z|y)", "paper: q_agg(z|y)"]
    gain = "+11.50 ± 0.42"
    assert rows[0][1:] == ["72.75", "87.01", "70.00 ± 0.30", "81.50 ± 0.30", "+14.26", gain, "6,000"]
    assert rows[1][1:] == ["", "", "60.00 ± 0.30", "not measured", "", "", "6,000"]
    assert rows[2][3:5] == ["not measured", "30,000.50 ± 0.30"]
    assert "95.56 % of all words, 95.00 % of those it says (colour_1 98.0)" in judge_sentence(compared)
    page = markdown(plan, plan.at("cpu"), compared, tmp_path)
    table = [line for line in page.splitlines() if line.startswith("| ")]
    assert len({line.replace("\\|", "").count("|") for line in table[:6]}) == 1
    assert "q_true(z\\|y)" in page
    assert all(stage.command in page for stage in plan.at("cpu").stage)
    assert judge_sentence(compare(plan, [])) == ""
