"""A dataset that is replaced while a model is trained on it is refused in time, or not recorded as the one it saw."""

import os
from pathlib import Path
from typing import Any

import pytest

import mmgen
from mmgen.artifacts import Dataset, read_header
from mmgen.commands import _exporting
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.generation import samples
from mmgen.posteriors import _encode
from mmgen.training.batches import DatasetRows
from mmgen.training.model_run import complete_settings, train_model
from mmgen.training.own_loop import OwnLoop


@pytest.fixture
def at_hand(tmp_path: Path) -> tuple[Path, Path, Path, Any]:
    """A dataset, another of equal pictures, a third of larger ones, and settings for the first."""
    paths = [tmp_path / f"{name}.h5" for name in "abc"]
    for path, size, seed in zip(paths, (16, 16, 20), (0, 1, 0), strict=True):
        mmgen.make_data("shapes", path, number=40, size=size, seed=seed, workers=1, progress=False).close()
    small = {"latent_size": 2, "hidden": 8, "image_network": {"name": "mlp"}}
    training = {"steps": 1, "batch": 8, "device": "cpu"}
    with Dataset.open(paths[0]) as data:
        return (*paths, complete_settings({"model": small, "training": training}, data))  # type: ignore[return-value]


def test_a_dataset_that_no_longer_fits_its_settings_is_refused(at_hand: tuple[Path, Path, Path, Any]) -> None:
    data, _, larger, settings = at_hand
    os.replace(larger, data)
    with pytest.raises(UsageError, match=r"a.h5 is not the dataset of these settings any more; type the command again"):
        train_model(data, settings, data.with_name("m.safetensors"))


def test_a_dataset_that_is_replaced_as_a_training_begins_is_refused(
    at_hand: tuple[Path, Path, Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, other, _, settings = at_hand
    real = DatasetRows.open_split

    def replaced(*arguments: Any) -> DatasetRows:
        if other.exists():
            os.replace(other, data)
        return real(*arguments)

    monkeypatch.setattr(DatasetRows, "open_split", replaced)
    with pytest.raises(ArtifactError, match=r"a.h5 was replaced meanwhile; type the command again"):
        train_model(data, settings, data.with_name("m.safetensors"))


def test_a_model_names_the_dataset_that_it_has_seen(at_hand: tuple[Path, Path, Path, Any]) -> None:
    data, other, _, settings = at_hand
    seen, out = read_header(data).content_id, data.with_name("m.safetensors")
    work = train_model(data, settings, out)
    os.replace(other, data)
    work.run()
    assert [parent.content_id for parent in read_header(out).parents] == [seen] != [read_header(data).content_id]


def replaced_while(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, old: Path, new: Path) -> None:
    """Let ``new`` take the place of ``old`` as soon as the function ``name`` of a module is called."""
    real = getattr(module, name)

    def replaced(*arguments: Any, **keywords: Any) -> Any:
        if new.exists():
            os.replace(new, old)
        return real(*arguments, **keywords)

    monkeypatch.setattr(module, name, replaced)


@pytest.fixture
def trained(at_hand: tuple[Path, Path, Path, Any]) -> tuple[Path, Path, Path]:
    """A dataset, and two models of it."""
    data, _, _, settings = at_hand
    models = [data.with_name(f"{name}.safetensors") for name in "mn"]
    for model, seed in zip(models, (0, 1), strict=True):
        training = settings.training.model_copy(update={"seed": seed})
        train_model(data, settings.model_copy(update={"training": training}), model).run()
    return data, models[0], models[1]


def test_encodings_are_of_the_model_that_was_opened_and_no_fit_of_another_takes_them(
    trained: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, other = trained
    seen, latents = read_header(model).content_id, data.with_name("l.h5")
    replaced_while(monkeypatch, _encode, "encode_points", model, other)
    with pytest.raises(ArtifactError, match=r"m.safetensors was replaced meanwhile; type the command again"):
        mmgen.fit_aggregate(model, family="gaussian", steps=1, latents=latents, device="cpu")
    assert {one.role: one.content_id for one in read_header(latents).parents}["model"] == seen
    assert not list(data.parent.glob("*aggregate*"))
    mmgen.fit_aggregate(model, family="gaussian", steps=1, latents=latents, device="cpu")
    assert {one.role: one.content_id for one in read_header(latents).parents}["model"] != seen, "encoded anew"


def test_a_loop_of_ones_own_names_the_dataset_that_it_has_opened(at_hand: tuple[Path, Path, Path, Any]) -> None:
    data, other, _, settings = at_hand
    seen = read_header(data).content_id
    loop = OwnLoop(data, settings.model_dump(mode="json", include={"model"}))
    os.replace(other, data)
    path = loop.save(data.with_name("own.safetensors"))
    assert [parent.content_id for parent in read_header(path).parents] == [seen]


def test_an_export_of_a_model_that_is_replaced_meanwhile_is_refused(
    trained: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, other = trained
    replaced_while(monkeypatch, _exporting, "_draw_pictures", model, other)
    with pytest.raises(ArtifactError, match=r"m.safetensors was replaced meanwhile"):
        mmgen.export(model, data.with_name("x"))
    assert not data.with_name("x").exists()


def test_samples_name_the_model_that_drew_them(
    trained: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, other = trained
    seen, drawn = read_header(model).content_id, data.with_name("drawn.h5")
    replaced_while(monkeypatch, samples, "write_samples", model, other)
    mmgen.sample(model, output=drawn, n=1, device="cpu")
    assert [parent.content_id for parent in read_header(drawn).parents] == [seen]
