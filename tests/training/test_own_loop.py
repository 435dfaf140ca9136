"""A loop of one's own: the same numbers as mmgen's, and a file that every command takes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import read_checkpoint, read_header
from mmgen.core.errors import ArtifactError, SettingsError, UsageError
from mmgen.core.seeding import stream_key
from mmgen.training.own_loop import OwnLoop
from tests.metrics.toy import write_dataset

SETTINGS = {
    "objective": {"name": "elbo", "beta": 0.5},
    "model": {"latent_size": 2, "hidden": 8, "image_network": {"name": "mlp", "hidden": [8]}},
    "training": {"batch": 8, "learning_rate": 0.01, "keep": "last"},
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data.h5")


def test_the_same_optimiser_gives_the_weights_of_the_program(data: Path, tmp_path: Path) -> None:
    theirs = mmgen.train(
        data,
        settings=SETTINGS,
        steps=4,
        precision="32-true",
        seed=3,
        device="cpu",
        output=tmp_path / "theirs.safetensors",
    )
    loop = OwnLoop(data, {**SETTINGS, "training": {"batch": 8, "seed": 3}})
    optimizer = torch.optim.Adam(loop.model.parameters(), 0.01)
    before = loop.validate()
    for step in range(4):
        torch.manual_seed(stream_key(3, "step", step, 0))  # draws of z
        optimizer.zero_grad()
        (-loop.objective(loop.batch(step), step).value.mean()).backward()
        optimizer.step()
    assert loop.model.training and loop.validate() != before
    path = loop.save(tmp_path / "mine.safetensors", step=4)
    mine, expected = (read_checkpoint(each, "model")[1] for each in (path, tmp_path / "theirs.safetensors"))
    assert mine.keys() == expected.keys()
    for name, weights in mine.items():
        torch.testing.assert_close(weights, expected[name], rtol=1e-5, atol=1e-6)
    again = mmgen.load(path)
    torch.testing.assert_close(again.decode(np.zeros(2)), theirs.decode(np.zeros(2)), rtol=1e-4, atol=1e-5)
    assert read_header(path).settings["training"] == {"batch": 8, "seed": 3}, "the rest is not known here"
    assert read_header(path).facts["step"] == 4 and again.dataset_path() == data
    assert mmgen.fit_aggregate(path, family="gaussian", steps=1, device="cpu").fitted is not None


def test_what_a_loop_cannot_train_or_write_is_refused(data: Path) -> None:
    for settings, says in (
        (
            {"objective": {"name": "factor-vae"}},
            "factor-vae trains an opponent of the model too; train it with",
        ),
        (
            {"training": {"steps": 9, "batch": 8}},
            "steps is for your own loop to choose, expected batch or seed",
        ),
        (
            {"model": {"l2_attributes_decoder": 0.1}},
            "attributes_decoder is for your own optimiser to apply; set it to",
        ),
    ):
        with pytest.raises(SettingsError, match=says):
            OwnLoop(data, settings)
    with pytest.raises(UsageError, match=r"data.h5"):
        OwnLoop(data, {**SETTINGS, "training": {}}).save(data)
    assert read_header(data).kind == "dataset"


def test_arguments_of_a_loop_are_checked_at_the_door(data: Path, tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"dataset": 3}, "dataset got 3, expected a path or text"),
        ({"settings": 3}, "settings got 3, expected a dictionary"),
        ({"preset": 3}, "preset got 3, expected text"),
        ({"devce": "cpu"}, "devce"),
    ]
    for arguments, says in wrong:
        with pytest.raises(UsageError, match=says):
            OwnLoop(**{"dataset": data, "settings": SETTINGS, **arguments})
    loop = OwnLoop(data, {**SETTINGS, "training": {"batch": np.int64(8)}})
    for step in (-1, "x", 1.5):
        with pytest.raises(UsageError, match="step got"):
            loop.batch(step)  # type: ignore[arg-type]
    out = tmp_path / "m.safetensors"
    for fact in (10**400, float("nan"), torch.ones(2, 2), {"a": 1}, object()):
        with pytest.raises(UsageError, match=r"^loss got "):
            loop.save(out, loss=fact)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^output got 3, expected a path or text"):
        loop.save(3)  # type: ignore[arg-type]
    loop.save(out, step=torch.tensor(3), note="mine")  # type: ignore[arg-type]
    assert read_header(out).facts["step"] == 3
    next(loop.model.parameters()).data.fill_(float("nan"))
    with pytest.raises(ArtifactError, match=r"other\.safetensors has NaN or infinite numbers in its tensor"):
        loop.save(tmp_path / "other.safetensors")
    assert not (tmp_path / "other.safetensors").exists() and mmgen.load(out)
