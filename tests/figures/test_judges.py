"""Scores, figures and reports take the same one of two judges."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from mmgen.artifacts import Dataset, read_header
from mmgen.figures.session import gather_files
from mmgen.generation.classifiers import find_classifier, find_dataset_classifier as find_judge_of_scores


@pytest.fixture
def folder(world: Path, stubs: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model and its data with two judges: "good" is the older one, "new" knows less."""
    monkeypatch.chdir(tmp_path)
    for name in ("data.h5", "flat.safetensors"):
        shutil.copy(world / name, tmp_path)
    with Dataset.open(tmp_path / "data.h5") as data:
        info = data.attributes["attributes"]
    for age, (name, accuracy) in enumerate([("new", {"mean": 60.0}), ("good", {"mean": 95.0}), ("blank", {})]):
        path = tmp_path / f"{name}.safetensors"
        stubs.save_judge(tmp_path / "data.h5", path, 1, info, accuracy)
        os.utime(path, (1e9 - age, 1e9 - age))
    return tmp_path


def _scores(folder: Path, judge: str) -> Path:
    ids = {"dataset": read_header(folder / "data.h5").content_id, "judge": judge}
    path = folder / "scores.jsonl"
    path.write_text(json.dumps({"metric": "correctness", "value": 80.0, "ids": ids}) + "\n")
    return path


def test_one_rule_for_scores_and_pictures(folder: Path) -> None:
    with Dataset.open(folder / "data.h5") as data:
        assert find_judge_of_scores(data, [folder]).name == "good.safetensors"
    assert find_classifier(folder / "flat.safetensors").name == "good.safetensors"
    (folder / "good.safetensors").unlink()
    assert find_classifier(folder / "flat.safetensors").name == "new.safetensors"


def test_a_report_takes_the_judge_that_gave_its_scores(folder: Path) -> None:
    model, new = folder / "flat.safetensors", folder / "new.safetensors"
    scores = _scores(folder, read_header(new).content_id)
    for more in ([], [folder / "good.safetensors", new]):
        report_files = gather_files([model, scores, *more])
        assert report_files.groups[0].judge.name == "new.safetensors"
        assert not report_files.notices
    assert gather_files([model]).groups[0].judge.name == "good.safetensors"


def test_a_report_whose_scores_another_judge_gave_says_so(folder: Path) -> None:
    report_files = gather_files([folder / "flat.safetensors", _scores(folder, "lost")])
    assert report_files.groups[0].judge.name == "good.safetensors"
    assert "judged by good.safetensors, which gave none of the scores" in report_files.notices[0]
