"""Lists with several seeds: which stages are repeated, what their files are called, how their tables read."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from mmgen.cli._main import main
from mmgen.core.errors import SettingsError, UsageError
from mmgen.experiments import experiment_names
from mmgen.experiments._page import comparison_tables, page_markdown
from mmgen.experiments._plan import read_plan, select_rows, shell_script
from mmgen.experiments._seeds import repeat_over_seeds, set_seed
from mmgen.experiments._stages import Plan, Scale
from mmgen.experiments._tables import compare_table
from mmgen.results.conditions import run_record
from mmgen.results.score import Score

LIST = """
title = "Two objectives"
source = "ours"
dataset = "digits"
let.eval.judge = "j.safetensors"
stage = [
  { why = "Data", command = "make-data", recipe = "mnist-a", seed = 3, makes = "d.h5" },
  { why = "Judge", command = "train-classifier", dataset = "d.h5", seed = 0, makes = "j.safetensors" },
  { why = "A", command = "train", dataset = "d.h5", objective = "telbo", seed = 0, makes = "a.safetensors", of = "A" },
  { why = "Scores of A", of = "A", command = "eval", model = "a.safetensors", makes = "a.jsonl" },
  { why = "B", command = "train", dataset = "d.h5", objective = "jmvae", seed = 0, makes = "b.safetensors", of = "B" },
  { why = "Scores of B", of = "B", seed = 0, command = "eval", model = "b.safetensors", makes = "b.jsonl" },
]
[[table]]
against = "A"
column = [{ name = "correctness", metric = "correctness" }]
row = [{ name = "A", scores = "a.jsonl", paper = [80.0] }, { name = "B", scores = "b.jsonl", paper = [82.0] }]
[scale.cpu]
about = "small"
folder = "two"
"""


def read(folder: Path, text: str = LIST) -> Plan:
    (folder / "two.toml").write_text(text)
    return read_plan(str(folder / "two.toml"))


def test_every_stage_with_a_seed_is_run_for_each_and_data_and_judge_once(tmp_path: Path) -> None:
    scale, runs = repeat_over_seeds(read(tmp_path).get_scale("cpu"), (0, 2))
    assert [stage.makes for stage in scale.stage] == [
        "d.h5", "j.safetensors",
        "a.safetensors", "a.jsonl", "b.safetensors", "b.jsonl",
        "a-seed2.safetensors", "a-seed2.jsonl", "b-seed2.safetensors", "b-seed2.jsonl",
    ]  # fmt: skip
    by_file = {stage.makes: stage for stage in scale.stage}
    assert by_file["d.h5"].seed == 3 and by_file["j.safetensors"].seed == 0
    assert by_file["a.safetensors"].command_line == "mmgen train d.h5 --objective telbo --seed 0 -o a.safetensors"
    # What has no seed but reads what has one is run for each.
    assert (
        by_file["a-seed2.jsonl"].command_line == "mmgen eval a-seed2.safetensors --judge j.safetensors -o a-seed2.jsonl"
    )
    assert by_file["b-seed2.jsonl"].seed == 2 and by_file["b-seed2.jsonl"].why == "Scores of B (seed 2)"
    assert runs["b.jsonl"] == ["b.jsonl", "b-seed2.jsonl"] and runs["d.h5"] == ["d.h5"]
    assert [stage.makes for stage in select_rows(scale, ["b"]).stage if stage.of] == [
        "b.safetensors", "b.jsonl", "b-seed2.safetensors", "b-seed2.jsonl"
    ]  # fmt: skip
    written = shell_script(read(tmp_path), scale, tmp_path)
    assert "\n# B (seed 2)\nmmgen train d.h5 --objective jmvae --seed 2 -o b-seed2.safetensors\n" in written


def test_no_seeds_leave_a_list_as_it_is(tmp_path: Path) -> None:
    listed = read(tmp_path).get_scale("cpu")
    assert repeat_over_seeds(listed, ()) == (listed, {stage.makes: [stage.makes] for stage in listed.stage})
    files = [stage.makes for stage in repeat_over_seeds(listed, (0,))[0].stage]
    assert files == [stage.makes for stage in listed.stage]


def test_a_list_says_how_many_and_what_is_made_for_each(tmp_path: Path) -> None:
    text = LIST.replace('folder = "two"', 'folder = "two"\nseeds = 3')
    text = text.replace('why = "Judge"', 'why = "Judge", once = false')
    listed = read(tmp_path, text).get_scale("cpu")
    assert listed.seeds == (0, 1, 2)
    made = [stage.makes for stage in repeat_over_seeds(listed, listed.seeds)[0].stage]
    assert made.count("j-seed1.safetensors") == 1 and len(made) == 1 + 3 * 5
    scores = {stage.makes: stage for stage in repeat_over_seeds(listed, listed.seeds)[0].stage}["a-seed1.jsonl"]
    assert scores.settings["judge"] == "j-seed1.safetensors"
    assert set_seed(listed, 4).seeds == (), "one seed that is asked for is one"
    once = LIST.replace('why = "Scores of A"', 'why = "Scores of A", once = true')
    with pytest.raises(UsageError, match=r"makes a\.jsonl runs once, but it reads a\.safetensors"):
        repeat_over_seeds(read(tmp_path, once).get_scale("cpu"), (0, 1))


@pytest.mark.parametrize("said", ['"x"', "0", "[1, 1]", "[-1]", "true"])
def test_what_are_no_seeds(said: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="seeds"):
        read(tmp_path, LIST.replace('folder = "two"', f'folder = "two"\nseeds = {said}'))


@pytest.mark.parametrize("name", experiment_names())
def test_every_list_of_the_package_takes_seeds_or_says_why_not(name: str) -> None:
    scale = read_plan(name).get_scale("cpu")
    if len({stage.seed for stage in scale.stage if stage.is_data}) > 1:
        with pytest.raises(UsageError, match="sets the seed of each run itself"):
            repeat_over_seeds(scale, (0, 1))
        return
    seeded, runs = repeat_over_seeds(scale, (0, 1))
    made: list[str] = []
    for stage in seeded.stage:  # each reads what is there by then
        files = {word for word in stage.arguments if word.endswith((".h5", ".safetensors", ".jsonl"))}
        assert files - {stage.makes} <= set(made)
        made.append(stage.makes)
    assert sum(len(files) == 2 for files in runs.values()) >= 3


def scored(model: str, seed: int, value: float) -> Score:
    run = run_record(model, [seed], [{"objective": model}], ["data"])
    return Score("correctness", "correctness", value, 0.3, "%", "higher", 100, "own", 4, "exact", run=run)


def test_tables_have_means_deviations_and_numbers_of_seeds(tmp_path: Path) -> None:
    """A: 80, 84, 88 (sd 4). B less A: 1, 3, 2: mean 2, error 1 / sqrt(3)."""
    plan = read(tmp_path)
    scale, runs = repeat_over_seeds(plan.get_scale("cpu"), (0, 1, 2))
    values = {"a": (80.0, 84.0, 88.0), "b": (81.0, 87.0, 90.0)}
    scores = {
        file: [scored(model, seed, value)]
        for model, of in values.items()
        for seed, (file, value) in enumerate(zip(runs[f"{model}.jsonl"], of, strict=True))
    }
    compared = compare_table(plan.table[0], scores, runs)
    table, differences = comparison_tables(plan, [compared])
    assert table.columns == ["", "paper: correctness", "ours: correctness", "seeds", "n"]
    assert [str(cell) for cell in table.rows[0]] == ["A", "80.00", "84 ± 4", "3", "300"]
    assert [[str(cell) for cell in row] for row in differences.rows] == [["B", "+2.00", "+2.0 ± 0.6"]]
    assert "standard deviation over their runs" in page_markdown(plan, scale, [compared], tmp_path, [])
    one = compare_table(plan.table[0], {file: part for file, part in scores.items() if "seed" not in file}, runs)
    table, _ = comparison_tables(plan, [one])
    assert table.columns == ["", "paper: correctness", "ours: correctness", "n"]
    assert [str(cell) for cell in table.rows[0]] == ["A", "80.00", "80.00 ± 0.30", "100"]


def test_runs_of_which_nothing_is_known_are_still_averaged(tmp_path: Path) -> None:
    plan = read(tmp_path)
    _, runs = repeat_over_seeds(plan.get_scale("cpu"), (0, 1))
    scores = {
        file: [replace(scored("a", 0, value), run={})] for file, value in zip(runs["a.jsonl"], (1.0, 3.0), strict=True)
    }
    cell = compare_table(plan.table[0], scores, runs).ours[0][0]
    assert cell is not None and (cell.value, cell.group.n) == (2.0, 2)


def test_a_file_of_the_list_is_not_taken_for_one_of_a_seed(tmp_path: Path) -> None:
    stages = read(tmp_path, LIST.replace("b.safetensors", "a-seed1.safetensors")).get_scale("cpu")
    assert isinstance(stages, Scale)
    with pytest.raises(UsageError, match=r"write the file a-seed1\.safetensors; rename one"):
        repeat_over_seeds(stages, (0, 1))


def test_rows_that_are_run_alone_have_the_names_that_the_table_looks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = LIST.replace('"jmvae", seed = 0', '"jmvae", seed = 1')  # the list has no seed of its own
    _, runs = repeat_over_seeds(read(tmp_path, text).get_scale("cpu"), (0, 1))
    with pytest.raises(SystemExit) as left:
        main(["reproduce", str(tmp_path / "two.toml"), "--only", "A", "--seeds", "2", "--dry-run"])
    words = shlex.split(capsys.readouterr().out, comments=True)
    assert left.value.code == 0 and set(runs["a.jsonl"]) == {"a-seed0.jsonl", "a-seed1.jsonl"}
    assert {word for word in words if word.endswith(".jsonl")} == set(runs["a.jsonl"])
