"""The presets of Burda et al.: the networks, first weights and schedule of the paper and of the authors' code."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from mmgen.artifacts import Dataset, DatasetWriter, read_checkpoint
from mmgen.core.errors import SettingsError
from mmgen.models._build import build_model
from mmgen.settings.config import merge
from mmgen.settings.extends import load_preset
from mmgen.training.batches import DatasetRows
from mmgen.training.log import log_path
from mmgen.training.model_run import complete_settings, train_model
from mmgen.training.settings import TrainingSettings
from mmgen.training.weights import set_first_weights

PRESETS = ("mnist-vae", "mnist-iwae", "mnist-vae-cpu", "mnist-iwae-cpu")
SIZE = 60
SMALL = {"name": "convolutional", "channels": [4, 4], "strides": [2, 2], "paddings": [1, 1]}
"""A network whose convolutions have no biases."""


@pytest.fixture(scope="module")
def dataset_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of probabilities whose mean is brightest in the middle; 40 to train on."""
    path = tmp_path_factory.mktemp("burda") / "mnist.h5"
    generator = np.random.default_rng(0)
    bright = 255 * np.exp(-((np.mgrid[:28, :28] - 13.5) ** 2).sum(0) / 40)
    images = (bright * generator.random((SIZE, 1, 28, 28))).astype(np.uint8)
    with DatasetWriter(path, size=SIZE, settings={"recipe": "mnist"}, seed=0) as writer:
        writer.add_image("image", (1, 28, 28), "probabilities")
        writer.write(0, {"image": images})
        writer.add_splits("official-400", train=range(40), val=range(40, 50), test=range(50, SIZE))
    return path


def settings_of(name: str, dataset_path: Path, over: dict[str, Any] | None = None):
    with Dataset.open(dataset_path) as dataset:
        return complete_settings(merge(load_preset(f"burda/{name}"), over or {}), dataset)


@pytest.mark.parametrize("name", PRESETS)
def test_the_networks_have_the_published_number_of_parameters(name: str, dataset_path: Path) -> None:
    """784-200-200-2x50 and 50-200-200-784: 217,300 + 207,984 = 425,284, with tanh between them."""
    settings = settings_of(name, dataset_path)
    model = build_model(settings.model, settings.build_objective().demands, settings.data)
    assert sum(parameter.numel() for parameter in model.parameters()) == 425_284
    between = [part for part in model.modules() if type(part).__module__ == "torch.nn.modules.activation"]
    assert [type(part) for part in between] == [nn.Tanh] * 4


def test_an_untrained_model_says_the_mean_training_picture(dataset_path: Path) -> None:
    """At z = 0 of a decoder without biases below its output: logit of the mean, taken within 0.001 of 0 and 1."""
    settings = settings_of("mnist-vae", dataset_path)
    torch.manual_seed(0)
    model = build_model(settings.model, settings.build_objective().demands, settings.data)
    with Dataset.open(dataset_path) as dataset:
        rows = DatasetRows.open_split(dataset, "official-400", "train", torch.device("cpu"))
        streamed = DatasetRows(dataset, rows.rows, torch.device("cpu"), resident=False)
        exact = dataset.read_image("image", rows.rows).astype(np.float64).mean(0) / 255
        np.testing.assert_allclose(rows.mean_image("image").numpy(), exact, atol=1e-12)
        np.testing.assert_allclose(streamed.mean_image("image").numpy(), exact, atol=1e-12)
        set_first_weights(model, settings.model, rows)
    said = model.mean("image", torch.zeros(1, 50))[0].detach().numpy()
    np.testing.assert_allclose(said, exact.clip(0.001, 0.999), atol=1e-6)


def test_first_weights_are_glorots(dataset_path: Path) -> None:
    """Uniform within sqrt(6 / (inputs + outputs)), mean and log sd being layers of 50 outputs each; biases of 0."""
    settings = settings_of("mnist-vae", dataset_path, {"model": {"output_bias": "default"}})
    torch.manual_seed(0)
    model = build_model(settings.model, settings.build_objective().demands, settings.data)
    with Dataset.open(dataset_path) as dataset:
        rows = DatasetRows.open_split(dataset, "official-400", "train", torch.device("cpu"))
        set_first_weights(model, settings.model, rows)
    layers = [part for part in model.modules() if isinstance(part, nn.Linear)]
    assert len(layers) == 6
    for layer in layers:
        gaussian = layer.out_features == 100
        for weight in layer.weight.chunk(2) if gaussian else [layer.weight]:
            bound = math.sqrt(6 / sum(weight.shape))
            assert 0.98 * bound < float(weight.detach().abs().max()) <= bound
            assert float(weight.detach().std()) == pytest.approx(bound / math.sqrt(3), rel=0.05)
        assert not layer.bias.any()


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ({"image_network": SMALL}, "decoder of image ends in"),
        ({"image_likelihood": "quantised-normal"}, "likelihood QuantisedNormal does not support"),
    ],
)
def test_an_output_bias_that_cannot_be_is_refused(
    model: dict[str, Any], complaint: str, dataset_path: Path, tmp_path: Path
) -> None:
    settings = settings_of("mnist-vae", dataset_path, {"model": model, "training": {"device": "cpu"}})
    with pytest.raises(SettingsError, match=complaint):
        train_model(dataset_path, settings, tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mnist-vae", "mnist-iwae", "mnist-vae-2", "mnist-iwae-2"])
def test_the_schedule_is_the_published_one(name: str) -> None:
    """3^i passes of 59,600 / 20 steps at 1e-3 x 10^(-i/7), i = 0 to 7, each beginning at its very step."""
    training = TrainingSettings(**load_preset(f"burda/{name}")["training"])
    passes = 59_600 // training.batch
    assert training.steps == passes * sum(3**i for i in range(8))
    begin = 0
    for i in range(8):
        for step in (begin, begin + passes * 3**i - 1):
            assert training.learning_rate_at(step) == pytest.approx(1e-3 * 10 ** (-i / 7), rel=1e-12)
        begin += passes * 3**i
    assert (training.batch, training.adam_epsilon, training.adam_betas) == (20, 1e-4, (0.9, 0.999))


def test_stages_reach_the_optimiser(dataset_path: Path, tmp_path: Path) -> None:
    """Four steps of two stages, and an epsilon so large that Adam's first step is the gradient by rate / epsilon."""
    stages = {"schedule": "stages", "stages": [[1, 1.0], [3, 0.1]], "learning_rate": 1e-3}
    over = {"steps": 4, "batch": 8, "device": "cpu", "precision": "32-true", "log_every": 1, **stages}
    over["adam_epsilon"] = 1e6
    settings = settings_of("mnist-vae", dataset_path, {"training": over})
    settings = settings.model_copy(update={"training": TrainingSettings(**over, validate_every=2)})
    train_model(dataset_path, settings, tmp_path / "m.safetensors").run()
    lines = [json.loads(line) for line in log_path(tmp_path / "m.safetensors").read_text().splitlines()]
    rates = [line["learning_rate"] for line in lines if "learning_rate" in line]
    assert rates == pytest.approx([1e-3, 1e-4, 1e-4, 1e-4])
    moved = read_checkpoint(tmp_path / "m.safetensors", "model")[1]
    unmoved = settings.model_copy(update={"training": TrainingSettings(**{**over, "steps": 0})})
    train_model(dataset_path, unmoved, tmp_path / "first.safetensors").run()
    first = read_checkpoint(tmp_path / "first.safetensors", "model")[1]
    assert max(float((moved[name] - first[name]).abs().max()) for name in first) < 1e-6


@pytest.mark.parametrize(
    "training", [{"schedule": "stages"}, {"stages": [[1, 1.0]]}, {"stages": [[1, 1.0]], "schedule": "cosine"}]
)
def test_stages_and_their_schedule_come_together(training: dict[str, Any], dataset_path: Path) -> None:
    with (
        Dataset.open(dataset_path) as dataset,
        pytest.raises(SettingsError, match=r"give training\.stages too|or leave the stages out"),
    ):
        complete_settings({"training": training}, dataset)
