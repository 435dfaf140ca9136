"""A file of a list that was made by hand: asked once whether it is the list's own, then used, and shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from mmgen.artifacts import read_header
from mmgen.cli import _runs, reproduce
from mmgen.experiments._plan import read_plan
from mmgen.experiments._seeds import repeat_over_seeds
from mmgen.experiments._states import finished_files
from tests.experiments.files import write_data, write_model

LIST = """
title = "One model"
source = "A paper"
dataset = "Digits"
stage = [
  { why = "Data", command = "make-data", recipe = "mnist", makes = "data.h5" },
  { why = "Model", command = "train", dataset = "data.h5", steps = 9, batch = 3, makes = "vae.safetensors" },
  { why = "Scores", command = "eval", model = "vae.safetensors", makes = "vae.jsonl" },
]
[[table]]
column = [{ name = "bound", quantity = "bound" }]
row = [{ name = "VAE", scores = "vae.jsonl" }]
[scale.cpu]
about = "Small."
folder = "one"
"""


def test_a_model_that_says_it_is_the_same_is_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.toml").write_text(LIST)
    plan = read_plan(str(tmp_path / "one.toml"))
    scale, runs = repeat_over_seeds(plan.get_scale("cpu"), ())
    model = tmp_path / "vae.safetensors"
    write_data(tmp_path / "data.h5", command="mmgen make-data mnist -o data.h5")
    write_model(model, tmp_path / "data.h5", command="mmgen train data.h5 --batch 3 --steps 9")
    ran = []

    def run_command(arguments: list[str], *_: Any, **__: Any) -> str:
        ran.append(arguments[0])
        if arguments[0] == "eval":
            line = {"metric": "elbo", "quantity": "bound", "value": -91.25, "posterior": "own", "n": 5}
            line["ids"] = {"model": read_header(model).content_id}
            (tmp_path / "vae.jsonl").write_text(json.dumps(line) + "\n")
        return ""

    monkeypatch.setattr(_runs, "run_command", run_command)
    assert _runs.run_stages(scale.stage, tmp_path)
    assert ran == ["train", "eval"]
    assert finished_files(scale, tmp_path) == ["data.h5", "vae.safetensors", "vae.jsonl"]
    page = tmp_path / "one-cpu.md"
    page.with_suffix(".html").write_text("made before")
    reproduce._print_tables(plan, scale, runs, page, has_run=False)
    assert "-91.25" in page.read_text() and "not measured" not in page.read_text()
    assert not _runs.run_stages(scale.stage, tmp_path), "nobody is asked twice"
