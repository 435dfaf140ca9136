"""``mmgen.load`` on what is no model: one sentence, never a traceback of somebody else's."""

import resource

import pytest
import torch

import mmgen
from mmgen.artifacts import FORMAT_VERSION, Dataset, read_checkpoint, write_checkpoint
from mmgen.core.errors import ArtifactError
from mmgen.modalities.image import ImageDescription
from mmgen.posteriors import load_aggregate
from mmgen.settings.config import merge
from mmgen.training.model_run import complete_settings, load_model
from tests.artifacts.remake_golden import GOLDEN
from tests.worlds import added, added_rows


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


def _with_settings(kind, path, change):
    """A small file of a kind with other settings than its tensors; those of golden files where they build networks."""
    header, tensors = read_checkpoint(GOLDEN / f"{kind}-v{FORMAT_VERSION}.safetensors")
    settings, facts = header.settings, header.facts
    if kind in ("model", "sharpener"):
        with Dataset.open(GOLDEN / f"dataset-v{FORMAT_VERSION}.h5") as dataset:
            settings = complete_settings({}, dataset).model_dump(mode="json")
        image = ImageDescription(shape=(3, 16, 16), layout="bytes").model_dump(mode="json")
        if kind == "sharpener":
            settings = {"data": {"modalities": {"image": image}}}
    write_checkpoint(path, kind=kind, tensors=tensors, settings=merge(settings, change), seed=0, facts=facts)
    return path


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("model", {"model": {"image_network": {"name": "mlp", "hidden": [20_000] * 125}}}),  # 200 GB
        ("model", {"model": {"image_network": {"name": "mlp", "hidden": [2] * 5000}}}),
        ("aggregate", {"aggregate": {"family": {"hidden": [20_000, 20_000]}}}),
        ("aggregate", {"aggregate": {"family": {"steps": 10**6}}}),
        *(row for rows in added("HUGE") for row in rows),
    ],
)
def test_settings_of_networks_that_would_fill_the_machine(kind, change, tmp_path):
    """A file of a kilobyte may describe 200 GB; it is refused before they are built."""
    path = _with_settings(kind, tmp_path / "huge.safetensors", change)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ArtifactError, match=r"its settings describe networks of far more than the [\d,]+ numbers"):
        {"model": load_model, "aggregate": load_aggregate, **added_rows("LOADERS")}[kind](path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "kilobytes"
