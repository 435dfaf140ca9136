"""Encodings that aggregates are fitted to: of images, of the right dataset, cached under a name of their own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.artifacts import Dataset, DatasetWriter, find_parent, read_header, read_latents
from mmgen.core.errors import UsageError
from mmgen.posteriors import _encoding as encoding, complete_fit_settings, fit_aggregate, posterior_to_aggregate
from mmgen.settings.config import merge
from mmgen.training.model_run import ExperimentSettings, complete_settings, load_model, train_model

TINY: dict[str, Any] = {
    "model": {
        "latent_size": 2,
        "hidden": 8,
        "image_network": {"name": "strided", "channels": [4]},
        "attribute_network": {"embedding": 4, "hidden": 8, "decoder_hidden": 8},
    },
    "training": {"steps": 1, "batch": 8, "device": "cpu"},
}


def write_dataset(path: Path, seed: int = 0, sizes: tuple[str, ...] = ("big", "small")) -> Path:
    generator = np.random.default_rng(seed)
    with DatasetWriter(path, size=60, settings={"recipe": "tiny"}, seed=seed, command="make tiny") as writer:
        writer.add_image("image", shape=(1, 16, 16), layout="bits")
        writer.add_image("edges", shape=(1, 16, 16), layout="bits")
        writer.add_attributes("attributes", {"size": list(sizes)})
        codes = generator.integers(0, 2, (60, 1)).astype(np.uint8)
        pixels = {name: generator.integers(0, 256, (60, 32)).astype(np.uint8) for name in ("image", "edges")}
        writer.write(0, {**pixels, "attributes": codes})
        writer.add_splits("iid", train=np.arange(40), val=np.arange(40, 50), test=np.arange(50, 60))
    return path


def settings_of(data: Path, **objective: Any) -> ExperimentSettings:
    with Dataset.open(data) as dataset:
        return complete_settings(merge(TINY, {"objective": {"name": "elbo", **objective}}), dataset)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "tiny.h5")


@pytest.fixture(scope="module")
def model(data: Path) -> Path:
    out = data.with_name("m.safetensors")
    train_model(data, settings_of(data), out).run()
    return out


def fit(model: Path, data: Path, out: Path, latents: Path | None = None, **values: Any) -> Path:
    """Fits a Gaussian for a step; returns the encodings that it was fitted to."""
    tiny = {"aggregate": {"family": {"name": "gaussian"}}, "training": {"steps": 1, "batch": 8, "device": "cpu"}}
    settings = complete_fit_settings(merge(tiny, values), load_model(model)[1])
    for work in fit_aggregate(model, data, settings, out, latents):
        work.run()
    return find_parent(out, "latents")


@pytest.mark.parametrize("modalities", [["image"], ["attributes"], ["image", "attributes"], ["image", "edges"]])
@pytest.mark.parametrize(
    ("given", "through"),
    [
        (["image"], ("image",)),
        (["image", "attributes"], ("image", "attributes")),
        (["edges"], ("edges",)),
        (["edges", "attributes"], ("edges", "attributes")),
        (["attributes"], None),
        ([], None),
    ],
)
def test_encodings_are_of_images(
    data: Path, modalities: list[str], given: list[str], through: tuple[str, ...] | None
) -> None:
    settings = settings_of(data, modalities=modalities, given=given)
    if through is not None:
        assert posterior_to_aggregate(settings) == through
        return
    with pytest.raises(UsageError, match=f"infers z from {given[0] if given else 'nothing'}, which is no image"):
        complete_fit_settings({}, settings)


@pytest.mark.slow
def test_every_choice_of_examples_has_a_file_of_its_own(model: Path, data: Path, tmp_path: Path) -> None:
    other = write_dataset(tmp_path / "other.h5", seed=1)
    out = tmp_path / "a.safetensors"
    first = fit(model, data, out)
    assert first.parent == model.parent
    found = {first}
    for number, (where, values) in enumerate(
        [
            (data, {"training": {"seed": 1}}),
            (data, {"aggregate": {"examples": 20}}),
            (data, {"training": {"precision": "bf16-mixed"}}),
            (other, {}),
        ]
    ):
        found.add(fit(model, where, tmp_path / f"{number}.safetensors", **values))
    assert len(found) == 5
    assert find_parent(out, "latents") == first, "no file was written over another"
    assert fit(model, data, tmp_path / "again.safetensors", training={"steps": 2}) == first


def test_encodings_of_another_dataset_are_not_reused(model: Path, data: Path, tmp_path: Path) -> None:
    other, latents = write_dataset(tmp_path / "other.h5", seed=1), tmp_path / "l.h5"
    fit(model, data, tmp_path / "a.safetensors", latents)
    one = read_latents(latents)
    fit(model, other, tmp_path / "b.safetensors", latents)
    two = read_latents(latents)
    assert not np.array_equal(one.mean, two.mean)
    assert {parent.content_id for parent in two.header.parents} >= {read_header(other).content_id}


def test_a_dataset_with_other_attributes_is_refused(model: Path, tmp_path: Path) -> None:
    other = write_dataset(tmp_path / "other.h5", sizes=("big", "small", "tiny"))
    with pytest.raises(UsageError, match=r"other\.h5 does not have the attributes that .*m\.safetensors was trained"):
        fit(model, other, tmp_path / "a.safetensors")


def test_nothing_is_written_over_what_is_needed(model: Path, data: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in (model, data)}
    out = tmp_path / "a.safetensors"
    for what, latents in ((out, data), (out, model), (model, None), (data, None), (out, out)):
        with pytest.raises(UsageError, match="cannot write"):
            fit(model, data, what, latents)
    with pytest.raises(UsageError, match="cannot write a model"):
        train_model(data, settings_of(data), data)
    assert all(path.read_bytes() == content for path, content in before.items())


def test_the_encoder_computes_as_asked(
    model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []
    plain = encoding.autocast
    monkeypatch.setattr(encoding, "autocast", lambda device, precision: used.append(precision) or plain(device))
    for precision in ("32-true", "bf16-mixed"):
        latents = tmp_path / f"{precision}.h5"
        fit(model, data, tmp_path / f"{precision}.safetensors", latents, training={"precision": precision})
    assert used == ["32-true", "bf16-mixed"]
