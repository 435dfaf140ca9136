"""``mmgen reproduce``: prints what it would run, runs what is missing, uses what is there."""

import subprocess
from pathlib import Path

import pytest

from tests.program import MMGEN, environment, within

TINY = """
extends = "{table}"
without = ["scale.cpu.let.train.device", "scale.cpu.let.train.devices"]

[scale.cpu.let]
make-data = {{ number = 240, size = 32 }}
train-classifier = {{ network = "small", steps = 20 }}
train = {{ steps = 8, set.model.latent_size = 4 }}
fit-aggregate.steps = 6
eval = {{ queries = 5, draws = 2, number = 5, {eval} }}
"""
SAMPLES = {"cremer-table1": "samples = 2", "cremer-table2": "samples = 2, text_samples = 5"}
WU_TINY = """
extends = "wu-table2/binary-mnist"

[scale.cpu.let]
make-data.source = "digits"
train = { split = "iid", steps = 4, set.objective.kl_warmup_steps = 1 }
eval = { samples = 3, text_samples = 8, number = 6 }
"""


def run(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return within(folder, *arguments)


def really(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, whose stages talk into what is captured."""
    return subprocess.run([*MMGEN, *arguments], capture_output=True, text=True, cwd=folder, env=environment())


def test_dry_run_prints_a_script_and_makes_nothing(tmp_path: Path) -> None:
    done = run("reproduce", "cremer-table1", "--scale", "paper", "-o", "there", "--dry-run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("#!/bin/sh\n# Table 1 of Cremer and Kushman (2018)")
    assert "cd there\n" in done.stdout
    assert "mmgen train two-objects.h5 --preset cremer/two-objects --seed 0 -o model.safetensors" in done.stdout
    assert list(tmp_path.iterdir()) == []
    checked = subprocess.run(["sh", "-n"], input=done.stdout, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.slow
def test_both_tables_at_a_size_that_shows_nothing(tmp_path: Path) -> None:
    for table, samples in SAMPLES.items():
        (tmp_path / f"{table}.toml").write_text(TINY.format(table=table, eval=samples))
    first = really("reproduce", "cremer-table1.toml", "-o", "out", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "out/cremer-table1-cpu.md\nout/cremer-table1-cpu.html\n"
    assert "<td>72.75</td>" in (tmp_path / "out" / "cremer-table1-cpu.html").read_text()
    page = (tmp_path / "out" / "cremer-table1-cpu.md").read_text()
    assert "not measured" not in page
    assert "72.75" in page
    assert "of all words" in page
    second = really("reproduce", "cremer-table2.toml", "-o", "out", folder=tmp_path)
    assert second.returncode == 0, second.stderr
    for kept in ("two-objects.h5", "judge.safetensors", "model.safetensors"):
        assert f"{kept} is there" in second.stderr
    page = (tmp_path / "out" / "cremer-table2-cpu.md").read_text()
    assert "not measured" not in page
    assert "-17.40" in page
    again = really("reproduce", "cremer-table2.toml", "-o", "out", folder=tmp_path)
    assert again.stderr.count(" is there") == 6
    assert "took" not in again.stderr


def test_part_of_a_table_of_several_datasets_as_a_script(tmp_path: Path) -> None:
    asked = ("reproduce", "wu-table2", "--data", "mnist", "--scale", "paper", "--only", "mvae", "--only", "VAE")
    done = run(*asked, "--dry-run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    commands = [line for line in done.stdout.splitlines() if line.startswith("mmgen")]
    assert [command.split(" -o ")[1] for command in commands] == [
        "mnist.h5", "vae.safetensors", "vae.jsonl", "mvae.safetensors", "mvae.jsonl"
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_models_as_rows_at_a_size_that_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "wu.toml").write_text(WU_TINY)
    first = really("reproduce", "wu.toml", "-o", "out", "--only", "VAE", "--only", "CVAE", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "out/wu-cpu.md\nout/wu-cpu.html\n"
    second = really("reproduce", "wu.toml", "-o", "out", "--only", "MVAE", folder=tmp_path)
    assert second.returncode == 0, second.stderr
    assert "binary-mnist.h5 is there" in second.stderr
    page = (tmp_path / "out" / "wu-cpu.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines() if line[:2] == "| "]
    found = {row[0]: row for row in rows if len(row) == 9 and row[0] in ("VAE", "CVAE", "JMVAE", "MVAE")}
    assert " ± " in found["MVAE"][4] and " ± " in found["MVAE"][6]
    assert found["JMVAE"][4] == "not measured"
    assert ["MVAE", "1,063,680", "1,063,680"] in [[cell.rstrip(" |") for cell in row] for row in rows]


WORDS_TINY = """
extends = "cremer-table1/celeba-words"

[scale.cpu.let]
train-classifier = { steps = 20 }
train = { steps = 8, devices = 1, batch = 16, set.model.latent_size = 4, set.objective.kl_warmup_steps = 2 }
fit-aggregate.steps = 6
eval = { queries = 20, draws = 2, number = 5, samples = 2 }
"""


@pytest.mark.slow
def test_faces_as_words_from_recipe_to_table(tmp_path: Path) -> None:
    """On drawn faces: correctness beside constant answers, words that are said, and posteriors that read a set."""
    from tests.data_recipes._faces import build_celeba

    faces = build_celeba(tmp_path / "celeba", 60)
    made = run("make-data", "celeba-words", "--celeba", str(faces), "--set", "size=32", "-o", "own.h5", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    (tmp_path / "tiny.toml").write_text(WORDS_TINY)
    done = really("reproduce", "tiny.toml", "--data", "own.h5", "-o", "out", folder=tmp_path)
    assert done.stdout == "out/tiny-cpu.md\nout/tiny-cpu.html\n", done.stderr
    page = (tmp_path / "out" / "tiny-cpu.md").read_text()
    rows = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in page.splitlines() if line.startswith("| ")}
    for name in ("correctness, all attributes, %", "the same, balanced, %", "correctness, words that are said, %"):
        assert sum(cell.strip() not in ("", "-") for cell in rows[name]) >= 5, (name, rows[name])
    assert "80.83" not in page, "published numbers do not stand beside drawn faces"


PAGES = """
title = "Pages"
source = "none"
dataset = "shapes"
stage = [
  {{ why = "data", command = "make-data", recipe = "shapes", number = 60, size = 16, workers = 1, makes = "d.h5" }},
  {further}
]
[scale.cpu]
folder = "made"
about = "A list whose stages make pages and pictures."
"""
MODEL = """
  { why = "m", command = "train", dataset = "d.h5", steps = 2, set.model.latent_size = 2, makes = "m.safetensors" },
  { why = "a picture", command = "sample", model = "m.safetensors", number = 2, makes = "d.png" },
  { why = "a page to play with", command = "explore", files = ["m.safetensors"], makes = "e.html" },
"""


@pytest.mark.slow
def test_pages_and_pictures_of_stages_are_no_files_of_the_report(tmp_path: Path) -> None:
    (tmp_path / "pages.toml").write_text(PAGES.format(further=""))
    done = really("reproduce", "pages.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "nothing was made that a report tells of, so there is none" in done.stderr
    (tmp_path / "pages.toml").write_text(PAGES.format(further=MODEL))
    done = really("reproduce", "pages.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    made = [Path(line).name for line in done.stdout.splitlines()]
    assert {"pages-cpu.md", "d.png", "e.html", "pages-cpu.html"} <= {*made}
