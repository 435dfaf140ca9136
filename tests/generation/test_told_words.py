"""Models that infer z from pictures and words together are given the words, and say so where they are not."""

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.generation import TrainedModel
from mmgen.generation.encode import attribute_probabilities
from tests.metrics.toy import write_dataset
from tests.program import ROOT

SETTINGS: dict[str, Any] = {
    "model": {"latent_size": 2, "hidden": 8, "image_network": {"name": "mlp", "hidden": [8]}},
    "training": {"batch": 8, "steps": 1, "device": "cpu"},
}
BOTH = {"name": "elbo", "given": ["image", "attributes"]}


def trained(folder: Path, objective: dict[str, Any]) -> tuple[TrainedModel, np.ndarray, np.ndarray]:
    """A model of one step, and its pictures with their words."""
    data = write_dataset(folder / "data.h5")
    model = mmgen.train(data, folder / "m.safetensors", settings={"objective": objective, **SETTINGS}, progress=False)
    with Dataset.open(data) as file:
        return model, file.read_pixels("image", slice(4)), file.read_attributes("attributes", slice(4))


def test_words_that_the_encoder_reads_are_asked_for(tmp_path: Path) -> None:
    model, images, words = trained(tmp_path, BOTH)
    asked = r"m\.safetensors infers z from image and attributes together, got image; give attributes=data\.read_attri"
    for ask in (model.encode, model.reconstruct):
        with pytest.raises(UsageError, match=asked):
            ask(images)
    z = model.encode(images, words).mean
    torch.testing.assert_close(model.reconstruct(images, words), model.decode(z))
    assert not torch.equal(model.encode(images, np.full_like(words, 255)).mean, z), "said to be unknown"
    with pytest.raises(UsageError, match=r"cannot infer z from image, expected"):
        model.encode({"image": images})
    for given in (images, {"image": images}):
        with pytest.raises(
            UsageError, match=r"from image and attributes together, so it cannot describe images; use a"
        ):
            attribute_probabilities(model, given)


@pytest.mark.parametrize(
    "objective", [{"name": "elbo"}, {"name": "mvae"}, {"name": "telbo"}], ids=lambda one: one["name"]
)
def test_models_that_infer_from_pictures_alone_need_none(tmp_path: Path, objective: dict[str, Any]) -> None:
    model, images, words = trained(tmp_path, objective)
    alone, told = model.encode(images).mean, model.encode(images, words).mean
    assert torch.equal(alone, told) == (objective["name"] == "elbo")
    if objective["name"] == "mvae":  # a product without the experts of what is unknown
        torch.testing.assert_close(model.encode(images, np.full_like(words, 255)).mean, alone)


@pytest.mark.slow
def test_the_python_of_the_readme_reconstructs_what_it_encodes(tmp_path: Path) -> None:
    """On a small model of the README's preset, told the words and not: unknown ones it has never seen."""
    (example,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
    made: dict[str, Any] = {}
    with contextlib.chdir(tmp_path):
        mmgen.make_data("shapes", "shapes.h5", number=400, size=32, workers=1, progress=False)
        mmgen.train("shapes.h5", "m.safetensors", preset="quickstart/shapes", steps=300, device="cpu", progress=False)
        mmgen.fit_aggregate("m.safetensors", "aggregate.safetensors", steps=20, progress=False)
        exec(example.replace("quickstart/", ""), made)
    model, real, words = made["model"], made["real"], made["words"]
    unknown = model.reconstruct(real, np.full_like(words, 255))
    told, untold = (-10 * np.log10(np.square(again.numpy() - real).mean()) for again in (made["again"], unknown))
    assert told > 19 and told > untold + 3, "decibels"
    torch.testing.assert_close(made["again"], model.reconstruct(real, words))
