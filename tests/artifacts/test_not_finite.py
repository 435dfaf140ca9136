"""Weights that are not finite are refused where they are read and written, whatever the file is."""

import math
from pathlib import Path

import pytest
import torch

import mmgen
from mmgen.artifacts import containers, read_checkpoint, write_checkpoint
from mmgen.classifier import load_classifier
from mmgen.core.errors import ArtifactError, DataError


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("kind", "command"),
    [("model", "mmgen train"), ("aggregate", "mmgen fit-aggregate"), ("classifier", "mmgen train-classifier")],
)
def test_weights_that_are_not_finite_are_refused(
    tmp_path: Path, kind: str, command: str, number: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "diverged.safetensors"
    tensors = {"steps": torch.ones(2, dtype=torch.int64), "decoder.0.weight": torch.tensor([[1.0, number]])}
    words = rf"diverged.* 'decoder.0.weight', .* again with {command} and"
    with pytest.raises(ArtifactError, match=words):
        write_checkpoint(path, kind=kind, tensors=tensors, settings={}, seed=0)
    assert not path.exists()
    with monkeypatch.context() as patched:  # a file of an earlier version
        patched.setattr(containers, "_check_finite", lambda *_: None)
        write_checkpoint(path, kind=kind, tensors=tensors, settings={}, seed=0)
    with pytest.raises(ArtifactError, match=words):
        read_checkpoint(path, kind)


def test_a_training_state_may_hold_an_infinity(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    write_checkpoint(path, kind="training-state", tensors={"best": torch.tensor(-math.inf)}, settings={}, seed=0)
    assert read_checkpoint(path)[1]["best"] == -math.inf


def overflow(path: Path, kind: str, part: str) -> Path:
    """The file with weights of a part so large that sums of them overflow; each number is finite."""
    header, tensors = read_checkpoint(path, kind)
    large = {
        name: (one * 1e38).clamp(-3e38, 3e38) if part in name and one.is_floating_point() else one
        for name, one in tensors.items()
    }
    assert any(not one.equal(tensors[name]) for name, one in large.items())
    return_path = path.with_name(f"large-{path.name}")
    write_checkpoint(
        return_path, kind=kind, tensors=large, settings=header.settings, seed=header.seed, parents=header.parents,
        facts=header.facts,
    )  # fmt: skip
    return return_path


def test_weights_that_are_finite_and_overflow_make_no_pictures_encodings_or_answers(tmp_path: Path) -> None:
    data = mmgen.make_data("shapes", tmp_path / "d.h5", number=60, size=16, workers=1, progress=False)
    settings = {"model.latent_size": 2, "model.hidden": 8, "model.image_network.name": "mlp"}
    path = tmp_path / "m.safetensors"
    mmgen.train(
        data.path, path, objective="elbo", steps=1, batch=8, settings=settings, device="cpu", precision="32-true"
    )
    judge = tmp_path / "j.safetensors"
    mmgen.train_classifier(data.path, judge, network="small", steps=1, device="cpu")
    said = "hold NaN or infinite numbers, expected finite ones: its weights are too large"
    with pytest.raises(DataError, match=rf"values of image drawn by .*large-m.safetensors {said}"):
        mmgen.sample(overflow(path, "model", "decoder"), n=1, device="cpu")
    pictures = data.read_image("image", slice(0, 2))
    with pytest.raises(DataError, match=f"encodings by this model {said}"):
        mmgen.load(overflow(path, "model", "encoder")).encode(pictures)
    reads = tmp_path / "r.safetensors"
    mmgen.train(
        data.path, reads, objective="jmvae", steps=1, batch=8, settings=settings, device="cpu", precision="32-true"
    )
    with pytest.raises(DataError, match=rf"means and deviations of the posterior of .*large-r.safetensors {said}"):
        mmgen.load(overflow(reads, "model", "inference")).posterior("shape=heart")
    with pytest.raises(DataError, match=f"answers of this judge {said}"):
        load_classifier(overflow(judge, "classifier", "")).predict(torch.from_numpy(pictures).float())
