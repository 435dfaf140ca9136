"""A dataset that is replaced while a model is trained on it is refused in time, or not recorded as the one it saw."""

import os
from pathlib import Path
from typing import Any

import pytest

import mmgen
from mmgen.artifacts import Dataset, read_header
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.training.batches import DatasetRows
from mmgen.training.model_run import complete_settings, train_model


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
