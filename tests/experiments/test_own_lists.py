"""Mistakes in a list of somebody's own are told before anything runs: the list, the stage or row, the remedy."""

from pathlib import Path

import pytest

from mmgen.experiments._plan import read_plan
from tests.cli.conftest import Run, run
from tests.experiments.files import write_data, write_model

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
[[stage]]
why = "Data"
command = "make-data"
recipe = "mnist"
makes = "data.h5"
[[stage]]
why = "A model"
command = "train"
dataset = "data.h5"
steps = 5
makes = "a.safetensors"
[[stage]]
why = "Its scores"
command = "eval"
model = "a.safetensors"
metric = "log-likelihood"
makes = "a.jsonl"
"""

MISTAKES = {
    "a truth value for an option of another": (
        'recipe = "mnist"', 'recipe = "shapes"\nnumber = true',
        "stage 1, mmgen make-data: number got true, expected a value"),
    "a word for a truth value": (
        "steps = 5", 'steps = 5\nalone = "yes"', "[2].alone' got 'yes', expected a valid boolean"),
    "a value by the name of a command": (
        "[scale.cpu]", "[let]\nmake-data = 33\n[scale.cpu]",
        "make-data got 33, expected a table of settings of that command"),
    "a cycle": ('recipe = "mnist"', 'recipe = "mnist"\nsource = "a.jsonl"', "stage 1 of 'cpu' reads a.jsonl, which"),
    "an option that there is not": (
        "steps = 5", "stpes = 5",
        "list.toml: setting 'scale.cpu.stage[2]': unknown setting 'stpes': did you mean 'steps'? Available: "),
    "a value that no option takes": (
        "steps = 5", 'steps = "few"', "stage 2, mmgen train: --steps got 'few', expected a valid integer"),
    "a recipe that there is not": (
        'recipe = "mnist"', 'recipe = "mnits"', "setting 'scale.cpu.stage[1]': unknown recipe"),
    "a member that another has": (
        'recipe = "mnist"', 'recipe = "mnist"\nfaces = 3', "setting 'scale.cpu.stage[1]': unknown setting 'faces'"),
    "help": ("steps = 5", "help = true", "settings': got the key 'help', expected an option of the command"),
    "another output": ("steps = 5", 'output = "b.h5"', "settings': got the key 'output', expected an option"),
    "a dash": ('dataset = "data.h5"', 'dataset = "-data.h5"', "dataset got '-data.h5', expected names that begin with"),
    "a date": ("steps = 5", "steps = 2020-01-01", "expected text, numbers, true or false"),
    "settings that are no table": ("steps = 5", "set = 3", "settings': set got 3, expected a table"),
    "a table that is no setting": ("steps = 5", "steps = { a = 1 }", "settings': steps got {'a': 1}, expected a value"),
    "a metric that there is not": (
        'metric = "log-likelihood"\n[[table.row]]', 'metric = "lgo-likelihood"\n[[table.row]]',
        "'log p(x)': unknown metric 'lgo-likelihood'"),
    "scores that no stage makes": ('scores = "a.', 'scores = "b.', "'A' has the scores b.jsonl, which no stage makes"),
    "two stages with one file": (
        'makes = "a.jsonl"', 'makes = "a.safetensors"', "stages 2 and 3 of 'cpu' both make a.safetensors"),
    "another program": (
        'command = "make-data"', 'command = "curl"',
        "setting 'scale.cpu.stage[1].command': unknown command 'curl': Available: "),
    "a key of a stage": ('why = "Data"', 'wy = "Data"', "setting 'scale.cpu.stage[1]': got 'wy', did you mean 'why'?"),
    "a key of a row": ('scores = "a.', 'score = "a.', "did you mean 'table[1].row[1].scores'? Available: "),
    "no title": ('title = "t"', "", "list.toml: setting 'title' is missing\n"),
    "nothing to show": (
        'scores = "a.jsonl"', "measured = false", "row 'A' is not measured and has no published numbers"),
    "a name that nothing defines": (
        'why = "Data"', 'why = "Data {of}"', "uses {of}, expected a name that [let] or a row defines"),
    "an axis that there is not": ('why = "Data"', 'why = "Data"\neach = "run"', "unknown axis 'run': there is none"),
    "an axis without rows": ('why = "Data"', 'why = "Data"\n[each]\nrun = []', "setting 'each.run' got [], expected"),
    "an axis of no runs": (
        'why = "Data"', 'why = "Data"\n[each]\nrun = 0', "setting 'each.run' got 0, expected a table"),
    "an axis of too many runs": (
        'why = "Data"', 'why = "Data"\n[each]\nrun = 1001', "setting 'each.run' got 1001, expected"),
    "five axes": ('why = "Data"', 'why = "Data"\neach = ["a", "b", "c", "d", "e"]', "stage[1].each': got ['a', 'b'"),
    "a scale that there is not": (
        'why = "Data"', 'why = "Data"\nscale = "huge"', "unknown scale 'huge': Available: cpu"),
    "values at a scale that there is not": ("steps = 5", "at.papre.steps = 5", "unknown scale 'papre': Available: cpu"),
    "settings of a command that there is not": (
        'folder = "runs/own"', 'folder = "runs/own"\nlet.trian.steps = 5',
        "unknown command 'trian': did you mean 'train'?"),
    "a stage that reads its own file": (
        'dataset = "data.h5"', 'dataset = "a.safetensors"',
        "stage 2 of 'cpu' reads a.safetensors, which it makes itself"),
    "a table without rows": (
        '[[table.row]]\nname = "A"\nscores = "a.jsonl"\n', "row = []\n", "list.toml: setting 'table[1].row'"),
    "a list that there is not": (
        'title = "t"', 'title = "t"\nextends = "cremer-table3"', "unknown list 'cremer-table3': did"),
}  # fmt: skip


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


@pytest.mark.parametrize("table", ["list.toml", "wu-table2"])
def test_a_model_is_no_dataset(table: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(LIST)
    write_data(tmp_path / "d.h5", command="mmgen make-data mnist")
    write_model(tmp_path / "m.safetensors", tmp_path / "d.h5", finished=True)
    done = run("reproduce", table, "--data", "m.safetensors", "-o", "out", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--data got m.safetensors, which is a model, expected a dataset of mmgen make-data" in done.stderr


def test_the_examples_of_the_page(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "own-lists.md").read_text(encoding="utf-8")
    blocks = [block for block in page.split("```toml\n")[1:] if "each.model" in block or "extends" in block]
    matrix, extending = (block.split("```")[0] for block in blocks)
    (tmp_path / "a.toml").write_text(f'title = "t"\nsource = "s"\ndataset = "d"\n{matrix}')
    vae, mvae = read_plan(str(tmp_path / "a.toml")).get_scale("cpu").stage
    assert vae.command_line == (
        "mmgen train mnist.h5 --preset wu/mnist-vae --split official --steps 45000 --seed 0 -o VAE.safetensors"
    )
    assert "--set objective.weights.attributes=1 --seed 0" in mvae.command_line and mvae.of == "MVAE"
    (tmp_path / "b.toml").write_text(extending)
    trained = [
        stage for stage in read_plan(str(tmp_path / "b.toml")).get_scale("cpu").stage if stage.command == "train"
    ]
    assert len(trained) == 6 and {stage.settings["steps"] for stage in trained} == {4500}
