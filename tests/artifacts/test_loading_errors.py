"""``mmgen.load`` on what is no model: one sentence, never a traceback of somebody else's."""

import pytest
import torch

import mmgen
from mmgen.artifacts import FORMAT_VERSION, read_checkpoint, write_checkpoint
from mmgen.core.errors import ArtifactError
from mmgen.posteriors import load_aggregate
from tests.artifacts.remake_golden import GOLDEN


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "dataset",
            "is a dataset, expected a model or an aggregate or a sharpener; make one with mmgen train or mmgen "
            "fit-aggregate or mmgen fit-sharpener",
        ),
        ("latents", "is latents, expected a model"),
        ("samples", "is samples, expected a model"),
    ],
)
def test_other_kinds(tmp_path, make, kind, words):
    make(kind, tmp_path / "file")
    with pytest.raises(ArtifactError, match=words):
        mmgen.load(tmp_path / "file")


def test_missing_empty_and_truncated_files(tmp_path, checkpoint_at):
    with pytest.raises(ArtifactError, match="no such file"):
        mmgen.load(tmp_path / "nowhere.safetensors")
    path = tmp_path / "m.safetensors"
    checkpoint_at(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ArtifactError, match="is truncated or damaged"):
        mmgen.load(path)
    path.write_bytes(b"")
    with pytest.raises(ArtifactError, match="is empty"):
        mmgen.load(path)


@pytest.mark.parametrize("kind", ["model", "aggregate"])
@pytest.mark.parametrize("settings", [{}, {"model": 3}, {"model": {"latent_size": "many"}}, {"os.system": "ls"}])
def test_settings_that_make_no_model(tmp_path, kind, settings):
    path = tmp_path / "m.safetensors"
    write_checkpoint(path, kind=kind, tensors={"w": torch.zeros(2)}, settings=settings, seed=0)
    with pytest.raises(ArtifactError) as caught:
        mmgen.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "shapes",
    [
        None,
        3,
        [2],
        {"z": 2},
        {"z": []},
        {"z": [-1, -2]},
        {"z": [2.0]},
        {"z": [1e400]},
        {"z": [3]},
        {"z": [True, 2]},
        {},
    ],
)
def test_shapes_of_z_that_a_fit_cannot_have(tmp_path, shapes):
    header, tensors = read_checkpoint(GOLDEN / f"aggregate-v{FORMAT_VERSION}.safetensors")
    path = tmp_path / "a.safetensors"
    facts = {} if shapes is None else {"latent_shapes": shapes}
    write_checkpoint(path, kind="aggregate", tensors=tensors, settings=header.settings, seed=0, facts=facts)
    with pytest.raises(ArtifactError, match="settings or tensors that do not fit"):
        load_aggregate(path)
