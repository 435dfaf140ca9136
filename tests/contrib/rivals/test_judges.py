"""Coherence finds a judge of each modality, or names the one that is missing."""

from pathlib import Path

import pytest

import mmgen
from mmgen.classifier import load_classifier
from mmgen.core.errors import MissingParentError
from tests.classifier.test_modalities import data as data, judges as judges, model as model


def test_coherence_finds_the_judge_of_each_modality(model: Path, judges: dict[str, Path], tmp_path: Path) -> None:
    found = mmgen.evaluate(model, "coherence", tmp_path / "s.jsonl", number=40, draws=4, device="cpu")
    named = mmgen.evaluate(
        model, ["coherence", "correctness"], tmp_path / "t.jsonl", judge=[*judges.values()][::-1], number=40,
        device="cpu", draws=4,
    )  # fmt: skip
    values = {score.quantity: score.value for score in found}
    assert {"right given 1 of 2 pictures", "joint coherence", "joint coverage", "coherence"} <= {*values}
    assert [score.value for score in named if score.metric == "coherence"] == [score.value for score in found]
    (judged,) = {score.ids["judge"] for score in named if score.metric == "correctness"}
    assert judged == load_classifier(judges["a"]).content_id


def test_a_missing_judge_is_named(model: Path, data: Path, judges: dict[str, Path], tmp_path: Path) -> None:
    hidden = judges["b"].rename(tmp_path / "elsewhere.safetensors")
    try:
        with pytest.raises(MissingParentError, match=f"train one with: mmgen train-classifier {data} --modality b"):
            mmgen.evaluate(model, "coherence", tmp_path / "s.jsonl", device="cpu")
    finally:
        hidden.rename(judges["b"])
