"""Lists of stages: they can be typed, what is there is used only if it fits, the paper's numbers stand beside ours."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

from cli._main import command_names, load_command
from mmgen import reproductions
from mmgen.artifacts import DatasetWriter, read_header, reference, write_checkpoint
from mmgen.config import preset_names
from mmgen.errors import ArtifactError, SettingsError, UsageError
from mmgen.metrics._base import Score
from mmgen.reproductions._comparison import Compared, compare
from mmgen.reproductions._page import judge_sentence, markdown, tables_of
from mmgen.reproductions._plan import Plan, Stage, find_list, fitting, only, read_plan, script, state_of, with_data
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
    rows = [read_plan(f"cremer-table{number}").table[0].row for number in (1, 2)]
    assert [[row.paper for row in part if row.paper] for part in rows] == [
        [(72.75, 87.01), (75716.48, 75739.79)],
        [(65.62, 83.81), (75715.36, 75726.15), (-19.43, -17.40)],
    ]


WU = [name for name in reproductions.names() if name.startswith("wu-table2/")]


@pytest.mark.parametrize("scale", ["cpu", "paper"])
@pytest.mark.parametrize("name", WU)
def test_models_of_a_table_are_treated_alike(name: str, scale: str) -> None:
    """Same data, schedule, weight of labels and questions; each by a preset that there is, every row a file."""
    plan = read_plan(name)
    stages = plan.at(scale).stage[1:]
    trained, scored = stages[::2], stages[1::2]
    rows = [row.name for row in plan.table[0].row]
    assert [stage.of for stage in trained] == [stage.of for stage in scored] == rows
    for table in plan.table:
        assert [(row.name, row.scores) for row in table.row] == [(row, f"{row.lower()}.jsonl") for row in rows]
    commands: set[str] = set()
    weights: set[str] = set()
    for stage in trained:
        preset = stage.arguments[stage.arguments.index("--preset") + 1]
        assert preset in preset_names()
        command = stage.command.replace(preset, "PRESET").replace(f"{stage.of.lower()}.safe", "MODEL.safe")
        # The weight of labels is a setting of the objective, and its name is not the same in all.
        weight = re.compile(r" --set objective\.(?:weights\.attributes|attributes_weight)=(\S+)")
        if stage.of not in ("VAE", "CVAE"):  # in these no label is explained
            weights.add(",".join(weight.findall(command)))
        commands.add(weight.sub("", command))
    assert len(commands) == 1
    assert len(weights) == 1
    asked = {stage.command.replace("auto", "image").replace(f"{stage.of.lower()}.", "MODEL.") for stage in scored}
    assert len(asked) == 1
    assert [stage.of for stage in scored if "--proposal auto" in stage.command] == (["CVAE"] if "CVAE" in rows else [])


def test_numbers_of_wu_and_goodman_fit_together() -> None:
    """WG Tables 1 to 3: joint variances of a model are near its marginal ones, log p(x1) > log p(x1,x2) by no more than
    a nat or five, and MVAE has as many parameters as BiVCCA."""
    assert len(WU) == 5
    for name in WU:
        likelihoods, variances, parameters = ({row.name: row.paper for row in t.row} for t in read_plan(name).table)
        for model in ("JMVAE", "MVAE"):
            marginal, joint, conditional = likelihoods[model]
            assert 0 < marginal - joint < 6 < conditional - joint + 6
            assert variances[model][1] / variances[model][0] == pytest.approx(1.04, abs=0.06)
        assert parameters["MVAE"] == parameters["MVAE-Q"] == parameters["BiVCCA"]
        assert parameters["VAE"] < parameters["MVAE"] < parameters["JMVAE"]
    rows = {row.name: row.paper for row in read_plan("wu-table2/binary-mnist").table[0].row}
    assert (rows["MVAE"][0], rows["JMVAE"][0], rows["VAE"][0]) == (-86.026, -86.305, -86.313)


def test_a_table_of_several_datasets(tmp_path: Path) -> None:
    assert find_list("wu-table2", "mnist") == ("wu-table2/mnist", None)
    assert find_list("cremer-table1", "my.h5") == ("cremer-table1", Path("my.h5"))
    assert find_list("wu-table2/mnist", None) == ("wu-table2/mnist", None)
    for recipe in ("fashion-mnist", "toy"):
        write_data(tmp_path / f"{recipe}.h5", recipe=recipe)
    own = tmp_path / "fashion-mnist.h5"
    assert find_list("wu-table2", str(own)) == ("wu-table2/fashion-mnist", own)
    with pytest.raises(UsageError, match=r"is of the recipe 'toy', expected one of binary-mnist"):
        find_list("wu-table2", str(tmp_path / "toy.h5"))
    with pytest.raises(UsageError, match=r"--data is not given, expected binary-mnist or"):
        find_list("wu-table2", None)
    with pytest.raises(UsageError, match=r"--data got 'mnst', expected"):
        find_list("wu-table2", "mnst")


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
    with pytest.raises(SettingsError, match="has 1 published numbers, expected 2"):
        read_plan(str(own))


def write_data(path: Path, level: int = 0, recipe: str = "toy") -> None:
    with DatasetWriter(path, size=3, settings={"recipe": recipe}, seed=0, command="make") as writer:
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


def compared(plan: Plan, scores: list[Score]) -> Compared:
    return compare(plan.table[0], {"scores.jsonl": scores})


def test_gains_of_likelihoods_are_paired_by_point() -> None:
    plan = read_plan("cremer-table1")
    points = {"split": "iid", "part": "test", "seed": 0}
    of = {
        name: Score("log-likelihood", "log p(x|y)", value, 173.2, "nats", "higher", 3, name, protocol="bound")
        for name, value in (("true", 400.0), ("aggregate", 410.0))
    }
    of["true"].extra.update(points, values=[100.0, 400.0, 700.0])
    of["aggregate"].extra.update(points, values=[109.0, 410.0, 711.0])
    gain = compared(plan, list(of.values())).difference((2, 1), (2, 0))
    assert gain == (10.0, pytest.approx(1 / 3**0.5))
    of["aggregate"].extra["seed"] = 1  # other points
    gain = compared(plan, list(of.values())).difference((2, 1), (2, 0))
    assert gain == (10.0, pytest.approx(173.2 * 2**0.5))


def test_comparison_by_hand(tmp_path: Path) -> None:
    plan: Plan = read_plan("cremer-table1")
    scores = [score("true", 70.0), score("aggregate", 81.5), score("true", 60.0, "exact")]
    scores.append(score("aggregate", 30_000.5, "bound", "log-likelihood"))
    found = compared(plan, scores)
    ((title, columns, rows),) = tables_of(plan, [found])
    assert title == plan.title
    assert columns[:3] == ["", "paper: q_true(z|y)", "paper: q_agg(z|y)"]
    assert columns[-3:] == ["gain of q_agg(z|y): paper", "ours", "n"]
    gain = "+11.50 ± 0.42"
    assert rows[0][1:] == ["72.75", "87.01", "70.00 ± 0.30", "81.50 ± 0.30", "+14.26", gain, "6,000"]
    assert rows[1][1:] == ["", "", "60.00 ± 0.30", "not measured", "", "", "6,000"]
    assert rows[2][3:5] == ["not measured", "30,000.50 ± 0.30"]
    assert "95.56 % of all words, 95.00 % of those it says (colour_1 98.0)" in judge_sentence([found])
    page = markdown(plan, plan.at("cpu"), [found], tmp_path)
    table = [line for line in page.splitlines() if line.startswith("| ")]
    assert len({line.replace("\\|", "").count("|") for line in table[:6]}) == 1
    assert "q_true(z\\|y)" in page
    assert all(stage.command in page for stage in plan.at("cpu").stage)
    assert judge_sentence([compared(plan, [])]) == ""


def of_model(name: str, values: list[float], posterior: str = "prior", seed: int = 0) -> Score:
    extra = {"split": "official", "part": "test", "seed": seed, "values": values, "samples": 1000}
    extra |= {"log_weight_variance": 22.5, "log_weight_variance_stderr": 0.5}
    mean = sum(values) / len(values)
    return Score("log-likelihood", name, mean, 0.7, "nats", "higher", 2, posterior, protocol="importance", extra=extra)


LIST = """
title = "Two models"
source = "A paper"
dataset = "Digits"

[[table]]
title = "Likelihoods"
against = "B"
decimals = 3
[[table.column]]
name = "log p(x)"
quantity = "log p(x)"
[[table.column]]
name = "log p(x,y)"
quantity = "log p(x,y)"
[[table.row]]
name = "A"
scores = "a.jsonl"
paper = [-86.3, ""]
[[table.row]]
name = "B"
scores = "b.jsonl"
paper = [-86.0, -86.2]

[[table]]
title = "Variances"
[[table.column]]
name = "log p(x)"
metric = "log-likelihood"
field = "log_weight_variance"
[[table.row]]
name = "A"
scores = "a.jsonl"

[scale.cpu]
folder = "two"
about = "Small."
[[scale.cpu.stage]]
why = "Data"
command = "mmgen make-data mnist -o data.h5"
makes = "data.h5"
[[scale.cpu.stage]]
of = "A"
why = "A"
command = "mmgen train data.h5 -o a.safetensors"
makes = "a.safetensors"
[[scale.cpu.stage]]
of = "B"
why = "B"
command = "mmgen train data.h5 -o b.safetensors"
makes = "b.safetensors"
"""


@pytest.fixture
def two_models(tmp_path: Path) -> Plan:
    (tmp_path / "two.toml").write_text(LIST)
    return read_plan(str(tmp_path / "two.toml"))


def test_models_as_rows_by_hand(two_models: Plan, tmp_path: Path) -> None:
    scores = {
        "a.jsonl": [of_model("log p(x)", [-80.0, -94.0])],
        "b.jsonl": [of_model("log p(x)", [-79.0, -92.0]), of_model("log p(x,y)", [-80.0, -93.0])],
    }
    found = [compare(table, scores) for table in two_models.table]
    shown = tables_of(two_models, found)
    assert [title for title, _, _ in shown] == ["Likelihoods", "Likelihoods: differences from B", "Variances"]
    columns = ["", "paper: log p(x)", "paper: log p(x,y)", "ours: log p(x)", "ours: log p(x,y)", "n", "draws of z"]
    assert shown[0][1] == columns
    assert shown[0][2] == [
        ["A", "-86.300", "", "-87.000 ± 0.700", "", "2", "1,000"],
        ["B", "-86.000", "-86.200", "-85.500 ± 0.700", "-86.500 ± 0.700", "2", "1,000"],
    ]
    assert shown[1][2] == [["A", "-0.300", "", "-1.50 ± 0.50", ""]]  # of the points: -1 and -2
    assert shown[2][2] == [["A", "22.50 ± 0.50", "2", "1,000"]]  # the paper has none of these
    page = markdown(two_models, two_models.at("cpu"), found, tmp_path)
    assert "## Likelihoods: differences from B" in page


def test_part_of_a_table(two_models: Plan) -> None:
    assert [stage.makes for stage in only(two_models.at("cpu"), ["b"]).stage] == ["data.h5", "b.safetensors"]
    with pytest.raises(UsageError, match="unknown row 'C'"):
        only(two_models.at("cpu"), ["C"])
    with pytest.raises(UsageError, match="rows share all"):
        only(read_plan("cremer-table1").at("cpu"), ["correctness"])


def test_what_rows_are_compared_with_has_to_be_there(two_models: Plan, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(LIST.replace('against = "B"', 'against = "C"'))
    with pytest.raises(SettingsError, match=r"(?i)against got 'c'"):
        read_plan(str(tmp_path / "two.toml"))


def test_only_scores_of_files_that_fit_are_shown(two_models: Plan, tmp_path: Path) -> None:
    scale = two_models.at("cpu")
    write_data(tmp_path / "data.h5")
    write_model(tmp_path / "a.safetensors", tmp_path / "data.h5", finished=True)
    write_model(tmp_path / "b.safetensors", tmp_path / "data.h5", finished=False)
    assert fitting(scale, tmp_path) == ["data.h5", "a.safetensors"]
    write_data(tmp_path / "other.h5", level=7)
    assert fitting(with_data(scale, tmp_path / "other.h5"), tmp_path) == []


WEAK = [name for name in reproductions.names() if name.startswith("wu-figure3/")]


@pytest.mark.parametrize("scale", ["cpu", "paper"])
@pytest.mark.parametrize("name", WEAK)
def test_methods_of_figure_3_see_the_same_pairs(name: str, scale: str) -> None:
    """One split and seed, the same shares for models and baselines, the same networks, all of them in the figure."""
    plan = read_plan(name)
    shares = [f"{column.extra['share']:g}" for column in plan.table[0].column]
    assert len(shares) == 6
    methods = [str(row.extra["method"]) for row in plan.table[0].row]
    *stages, figure = plan.at(scale).stage[1:]
    asked: dict[str, list[str]] = {}
    networks = set()
    for stage in stages:
        words = stage.arguments
        if words[0] == "eval":
            continue
        assert words[words.index("--split") + 1] == "official" and words[words.index("--seed") + 1] == "0"
        method = words[words.index("--method") + 1] if words[0] == "baseline" else stage.makes.split("-")[0]
        asked.setdefault(method, []).extend(words[i + 1] for i, word in enumerate(words) if word == "--paired")
        networks.add(words[words.index("--preset") + 1].removesuffix("-jmvae"))
    assert asked.keys() == set(methods) - ({"jmvae"} if scale == "cpu" else set())
    assert all(given == shares for given in asked.values())
    assert len(networks) == 1 and networks <= set(preset_names())
    assert [stage.makes for stage in stages if stage.makes.endswith(".jsonl")] == figure.arguments[2:-2]


def test_a_cell_is_found_by_its_method_and_share() -> None:
    plan = read_plan("wu-figure3/mnist")
    table = plan.table[0]
    found = [
        Score("label-accuracy", "whole description", value, 1.0, "%", "higher", 10, "x", protocol=protocol, extra=extra)
        for value, protocol, extra in (
            (1.0, "mean", {"method": "mvae", "share": 0.01}),
            (2.0, "samples", {"method": "mvae", "share": 0.01}),
            (3.0, "baseline", {"method": "logistic", "share": 0.01}),
            (4.0, "baseline", {"method": "logistic", "share": 1.0}),
        )
    ]
    compared = compare(table, {"a.jsonl": found})
    ours = compared.ours
    ((_, columns, _),) = tables_of(plan, [compared])
    assert columns[1] == "ours: 28 pairs", "there are no columns for numbers that the paper does not have"
    values = {
        (column.extra["share"], row.extra["method"]): cell.value
        for row, cells in zip(table.row, ours, strict=True)
        for column, cell in zip(table.column, cells, strict=True)
        if cell is not None
    }
    assert values == {(0.01, "mvae"): 1.0, (0.01, "logistic"): 3.0, (1.0, "logistic"): 4.0}
