"""Linear probes of planted encodings: labels that are linear in z, that are not in it, and in one layer alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.evaluation import Evaluation, EvaluationSettings
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.metrics._base import evaluate
from mmgen.results.score import Score
from tests.metrics.toy import Judge, Painter, loaded_painter, write_dataset


class Noise(Painter):
    """Encodes every picture as noise."""

    def posterior(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
        mean = torch.randn(batch.size, 2, generator=torch.Generator().manual_seed(batch.size))
        return DiagonalGaussian(mean, torch.zeros_like(mean))


class Mixed(Painter):
    """Encodes [digit + size, digit - size]: each label needs both numbers."""

    def posterior(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
        one, other = batch.values["attributes"].float().unbind(1)
        mean = torch.stack([one + 2 * other, one - 2 * other], 1)
        return DiagonalGaussian(mean, torch.zeros_like(mean))


class Shared(Painter):
    """z is the digit, which all modalities share, and the size, which is the picture's own."""

    latent = LatentSpace.flat(1).with_private({"image": 1})


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_dataset(tmp_path_factory.mktemp("probe") / "toy.h5", 1800))


def asked(dataset: Dataset, model: Any, **settings: Any) -> Evaluation:
    loaded = loaded_painter(Path("m.safetensors"))
    loaded.model = model
    return Evaluation(loaded, dataset, Judge(), ("prior",), EvaluationSettings(number=500, **settings))


def measure(evaluation: Evaluation) -> dict[str, Score]:
    return {score.quantity: score for score in evaluate(evaluation, ["probe"]).run()}


@pytest.mark.parametrize("model", [Painter(), Mixed()])
def test_labels_that_are_linear_in_z_are_all_read(model: Painter, dataset: Dataset) -> None:
    scores = measure(asked(dataset, model))
    assert {quantity: score.value for quantity, score in scores.items()} == {"digit from z": 100, "size from z": 100}
    score = scores["digit from z"]
    assert score.n == 500 and score.stderr is not None and 0 < score.stderr < 1
    assert score.details["chance"] == pytest.approx(100 / 3, abs=6)
    assert score.conditions["inputs"] == "image" and score.conditions["learnt_from"] == "600"
    assert score.details["dimensions"] == 2


def test_labels_that_are_not_in_z_are_read_by_chance(dataset: Dataset) -> None:
    for name, score in measure(asked(dataset, Noise())).items():
        assert score.stderr is not None
        assert abs(score.value - (100 / 3 if name.startswith("digit") else 50)) < 4 * score.stderr, name


def test_shared_and_private_layers_are_probed_apart(dataset: Dataset) -> None:
    values = {name: score.value for name, score in measure(asked(dataset, Shared())).items()}
    assert [values["digit from z"], values["digit from z (shared)"], values["size from z of image"]] == [100, 100, 100]
    assert values["digit from z of image"] < 45 and values["size from z (shared)"] < 62


def test_it_learns_from_few_training_examples_of_its_own(dataset: Dataset) -> None:
    score = measure(asked(dataset, Painter(), encodings=40))["digit from z"]
    assert score.conditions["learnt_from"] == "40" and score.value == 100


def test_data_without_labels_are_refused(dataset: Dataset) -> None:
    evaluation = asked(dataset, Painter())
    evaluation.loaded.attributes = None
    with pytest.raises(UsageError, match="probe needs labels to read, and the data of this model have no attributes"):
        evaluate(evaluation, ["probe"])


def test_unknown_labels_count_nowhere() -> None:
    from mmgen.contrib.rivals.metrics.probe import _read_labels

    numbers = np.arange(8.0)[:, None]
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 255], np.uint8)
    values, chance = _read_labels(numbers, labels, numbers, labels)
    assert values.tolist() == [100.0] * 7 and chance == pytest.approx(400 / 7)
    nothing, _ = _read_labels(numbers, np.zeros(8, np.uint8), numbers, labels)
    assert not len(nothing)
