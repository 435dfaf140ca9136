"""Judges of several pictures of an example: each learns from its own, is found by it, and judges no other one."""

from pathlib import Path

import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import read_header
from mmgen.classifier import ClassifierSettings, load_classifier, train_classifier
from mmgen.classifier._files import find_best_classifier
from mmgen.core.errors import UsageError
from mmgen.settings.config import validate
from tests.small_data import write_small

TRAINING = {"steps": 60, "batch": 32, "validate_every": 60, "device": "cpu"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures a and b [1, 8, 8] of three examples' tones: b is 255 less a, so that a judge of the other is misled."""
    path = tmp_path_factory.mktemp("views") / "views.h5"
    codes = (np.arange(180) % 3).astype(np.uint8)[:, None]
    one = np.broadcast_to((100 * codes)[:, None, None], (180, 1, 8, 8)).astype(np.uint8)
    values = {"a": one, "b": 200 - one, "attributes": codes}
    return write_small(path, values, {"tone": ["dark", "grey", "light"]}, parts=(90, 30))


@pytest.fixture(scope="module")
def judges(data: Path) -> dict[str, Path]:
    made = {name: data.with_name(f"{name}.safetensors") for name in "ab"}
    for name, path in made.items():
        values = {"network": "small", "modality": name, "training": TRAINING}
        train_classifier(data, path, validate(ClassifierSettings, values)).run()
    return made


@pytest.fixture(scope="module")
def model(data: Path, judges: dict[str, Path]) -> Path:
    settings = {
        "objective": {"modalities": ["a", "b", "attributes"]},
        "model": {"latent_size": 2, "hidden": 8, "image_network": {"name": "mlp", "hidden": [8]}},
    }
    path = data.with_name("model.safetensors")
    mmgen.train(data, path, objective="mvae", steps=4, batch=16, settings=settings, device="cpu")
    return path


def test_a_judge_reads_the_modality_that_it_was_trained_on(judges: dict[str, Path]) -> None:
    pictures = torch.tensor([0, 100, 200])[:, None, None, None].expand(3, 1, 8, 8) / 255
    for name, path in judges.items():
        judge = load_classifier(path)
        assert judge.described.name == name and judge.accuracy["mean"] > 95
        assert judge.predict(pictures)[:, 0].tolist() == ([0, 1, 2] if name == "a" else [2, 1, 0])


def test_the_main_modality_by_name_is_the_default_one(data: Path, judges: dict[str, Path]) -> None:
    """So that judges of earlier versions, whose settings name none, count as finished."""
    assert "modality" not in read_header(judges["a"]).settings
    assert read_header(judges["b"]).settings["modality"] == "b"
    values = {"network": "small", "training": TRAINING}
    assert train_classifier(data, judges["a"], validate(ClassifierSettings, values)).run().percent["mean"] > 95
    with pytest.raises(UsageError, match="is a finished judge with another modality"):
        train_classifier(data, judges["b"], validate(ClassifierSettings, values)).run()


def test_a_judge_is_found_by_its_modality(data: Path, judges: dict[str, Path]) -> None:
    identity = read_header(data).content_id
    for name, path in judges.items():
        assert find_best_classifier(identity, [data.parent], modality=name) == path.resolve()
    assert find_best_classifier(identity, [data.parent], modality="c") is None


def test_an_unknown_modality_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown modality 'c'"):
        mmgen.train_classifier(data, tmp_path / "judge.safetensors", modality="c", steps=1, device="cpu")
    assert not list(tmp_path.iterdir())


def test_a_judge_of_another_modality_is_refused(model: Path, judges: dict[str, Path], tmp_path: Path) -> None:
    said = "the judge reads b, expected one that reads a; train one with mmgen train-classifier --modality a"
    with pytest.raises(UsageError, match=said):
        mmgen.evaluate(model, "correctness", tmp_path / "s.jsonl", judge=judges["b"], device="cpu")
    with pytest.raises(UsageError, match=said):
        mmgen.sample(model, "tone=dark", output=tmp_path / "s.png", judge=judges["b"], device="cpu")
    assert not list(tmp_path.iterdir())
