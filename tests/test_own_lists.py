"""Mistakes in a list of somebody's own are told before anything runs: the list, the stage or row, the remedy."""

from pathlib import Path

import pytest

from mmgen.core.errors import SettingsError
from mmgen.experiments import names
from mmgen.experiments._plan import read_plan
from tests.cli.conftest import Run, run
from tests.test_reproduction_states import write_data, write_model

__all__ = ["run"]  # the fixture

LIST = """
title = "t"
source = "s"
dataset = "d"
[[table]]
[[table.column]]
name = "log p(x)"
metric = "log-likelihood"
[[table.row]]
name = "A"
scores = "a.jsonl"
[scale.cpu]
about = "small"
folder = "runs/own"
[[scale.cpu.stage]]
why = "Data"
command = "mmgen make-data mnist -o data.h5"
makes = "data.h5"
[[scale.cpu.stage]]
why = "A model"
command = "mmgen train data.h5 --steps 5 -o a.safetensors"
makes = "a.safetensors"
[[scale.cpu.stage]]
why = "Its scores"
command = "mmgen eval a.safetensors --metric log-likelihood -o a.jsonl"
makes = "a.jsonl"
"""

MISTAKES = {
    "a cycle": ("make-data mnist -o", "make-data mnist --source a.jsonl -o", "stage 1 of 'cpu' reads a.jsonl, which"),
    "an option that there is not": (
        "--steps 5",
        "--stpes 5",
        "list.toml: stage 2, mmgen train: No such option: --stpes (Possible options: ",
    ),
    "a value that no option takes": (
        "--steps 5",
        "--steps few",
        "stage 2, mmgen train: --steps got 'few', expected a valid integer",
    ),
    "a recipe that there is not": ("make-data mnist", "make-data mnits", "stage 1, mmgen make-data: unknown recipe"),
    "a member that another has": ("make-data mnist", "make-data mnist --faces 3", "stage 1, mmgen make-data: "),
    "help": ("--steps 5", "--help", "stage 2 says --help, which makes no file"),
    "a metric that there is not": ('metric = "log-l', 'metric = "lgo-l', "'log p(x)': unknown metric 'lgo-likelihood'"),
    "scores that no stage makes": ('scores = "a.', 'scores = "b.', "'A' has the scores b.jsonl, which no stage makes"),
    "two stages with one file": (
        'eval a.safetensors --metric log-likelihood -o a.jsonl"\nmakes = "a.jsonl',
        'train data.h5 -o a.safetensors"\nmakes = "a.safetensors',
        "stages 2 and 3 of 'cpu' both make a.safetensors",
    ),
    "another program": (
        "mmgen make-data mnist -o data.h5",
        "curl -o data.h5",
        "setting 'scale.cpu.stage[1].command': got 'curl -o data.h5', expected a command that begins with mmgen",
    ),
    "a key of a stage": ('why = "Data"', 'wy = "Data"', "did you mean 'scale.cpu.stage[1].why'? Available: "),
    "a key of a row": ('scores = "a.', 'score = "a.', "did you mean 'table[1].row[1].scores'? Available: "),
    "no title": ('title = "t"', "", "list.toml: setting 'title' is missing\n"),
    "nothing to show": (
        'scores = "a.jsonl"',
        "measured = false",
        "row 'A' is not measured and has no published numbers",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_before_anything_runs(mistake: str, run: Run, tmp_path: Path) -> None:
    old, new, said = MISTAKES[mistake]
    assert LIST.count(old) == 1
    (tmp_path / "list.toml").write_text(LIST.replace(old, new))
    for further in (("--dry-run",), ()):
        done = run("reproduce", "list.toml", *further)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr and done.stderr.startswith("mmgen: list.toml: ")
        assert "expected a list of at least" not in done.stderr
        assert not (tmp_path / "runs").exists()


def test_the_list_without_a_mistake_is_printed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(LIST)
    done = run("reproduce", "list.toml", "--dry-run")
    assert done.returncode == 0 and done.stdout.count("\nmmgen ") == 3
    done = run("reproduce", "list.toml", "--only", "B", "--dry-run")
    assert done.returncode == 2 and "--only got 'B', but the rows of this table share all" in done.stderr


def test_a_first_stage_that_fails_leaves_no_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(LIST.replace("make-data mnist", "make-data folder nowhere"))
    done = run("reproduce", "list.toml")
    assert done.returncode == 1 and "nowhere" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("table", ["list.toml", "wu-table2"])
def test_a_model_is_no_dataset(table: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(LIST)
    write_data(tmp_path / "d.h5", command="mmgen make-data mnist")
    write_model(tmp_path / "m.safetensors", tmp_path / "d.h5", finished=True)
    done = run("reproduce", table, "--data", "m.safetensors", "-o", "out", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--data got m.safetensors, which is a model, expected a dataset of mmgen make-data" in done.stderr


@pytest.mark.parametrize("name", names())
def test_the_lists_of_the_package_keep_to_the_same_rules(name: str) -> None:
    assert read_plan(name).scale


def test_a_row_with_the_papers_numbers_alone() -> None:
    row = next(row for table in read_plan("salakhutdinov-bsds").table for row in table.row if not row.measured)
    assert row.name == "RNADE" and any(row.paper)


def test_a_wrong_list_of_another_kind_is_still_told(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(LIST.replace('[[table.row]]\nname = "A"\nscores = "a.jsonl"\n', "row = []\n"))
    with pytest.raises(SettingsError, match="row"):
        read_plan(str(tmp_path / "list.toml"))
