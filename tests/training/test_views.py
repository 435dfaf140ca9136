"""Pixels that are drawn anew in every view: rates, keys, and that a resumed run sees what an uninterrupted one saw."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.artifacts import Dataset, read_checkpoint
from mmgen.core.errors import UsageError
from mmgen.core.views import draw_pixels, view_key
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.generation import load
from mmgen.metrics._base import evaluate
from mmgen.training.batches import DatasetRows
from mmgen.training.model_run import complete_settings, train_model
from mmgen.training.pairing import PairedRows
from tests.small_data import write_small

CPU = torch.device("cpu")
SIZE = 60


@pytest.fixture(scope="module")
def grey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty images of 4 x 4 probabilities, from never to always white."""
    path = tmp_path_factory.mktemp("views") / "grey.h5"
    images = np.random.default_rng(0).integers(0, 256, (SIZE, 1, 4, 4), np.uint8)
    images[:, :, 0, 0], images[:, :, 0, 1] = 0, 255
    values = {"image": images, "attributes": (np.arange(SIZE) % 2).astype(np.uint8)[:, None]}
    return write_small(path, values, {"parity": ["even", "odd"]}, None, (40, 10), "probabilities", recipe="grey")


def seen(rows: DatasetRows, *numbers: int, view: tuple[int, ...] = ()) -> Tensor:
    return rows.view(torch.tensor(numbers), 3, *view).values["image"]


def test_a_pixel_is_white_as_often_as_it_says() -> None:
    """256 probabilities, 20,000 draws each: every rate within 4.5 standard errors, 0 never and 255 always."""
    stored = torch.arange(256, dtype=torch.uint8).expand(20_000, 256)
    rate = draw_pixels(stored, torch.arange(20_000), key=view_key(0, "image")).mean(0)
    wanted = torch.arange(256) / 255
    assert rate[0] == 0 and rate[255] == 1
    error = (wanted * (1 - wanted) / 20_000).sqrt()
    assert ((rate - wanted).abs() <= 4.5 * error).all()


def test_pixels_rows_and_views_are_drawn_independently() -> None:
    """Correlations of 300 pixels over 4,000 rows, and of 300 views over 4,000 pixels, are noise of 1 / sqrt(4,000)."""
    half = torch.full((4_000, 300), 128, dtype=torch.uint8)
    pixels = draw_pixels(half, torch.arange(4_000), key=5)
    views = torch.cat([draw_pixels(half[:300].reshape(1, -1)[:, :4_000], torch.tensor([7]), k) for k in range(300)])
    for drawn in (pixels.T, views):
        correlation = torch.corrcoef(drawn).fill_diagonal_(0)
        assert correlation.abs().max() < 6 / 4_000**0.5
        assert correlation.std() * 4_000**0.5 == pytest.approx(1, abs=0.05)


def test_a_row_looks_the_same_whoever_is_beside_it_and_anew_in_the_next_view(grey: Path) -> None:
    with Dataset.open(grey) as dataset:
        rows = DatasetRows(dataset, np.arange(SIZE), CPU)
        part = DatasetRows(dataset, np.arange(20, 30), CPU, resident=False)
        assert set(seen(rows, *range(SIZE)).unique().tolist()) == {0.0, 1.0}
        assert seen(rows, 25, 21, view=(4,)).equal(seen(part, 5, 1, view=(4,)))
        assert not seen(rows, *range(SIZE), view=(4,)).equal(seen(rows, *range(SIZE), view=(5,)))
        assert rows.batch(torch.arange(9)).values["image"].equal(rows.batch(torch.arange(9)).values["image"])
        other = DatasetRows(dataset, np.arange(SIZE), CPU, seed=1)
        assert not other.batch(torch.arange(9)).values["image"].equal(rows.batch(torch.arange(9)).values["image"])
        np.testing.assert_array_equal(
            dataset.read_pixels("image", np.arange(9)), rows.batch(torch.arange(9)).values["image"].numpy()
        )
        apart = PairedRows(rows, ("image", "attributes"), 1.0, seed=0)
        assert (
            apart.view(torch.arange(9), 3, 4).values["image"].equal(seen(rows, *apart._example[:9].tolist(), view=(4,)))
        )


def trained(grey: Path, out: Path, begin: int = 0) -> Path:
    """Twelve steps; ``begin`` stops after that many, as a killed process would."""
    values = {
        "objective": {"name": "iwae", "samples": 2, "modalities": ["image"]},
        "model": {"latent_size": 2, "image_network": {"name": "mlp", "hidden": [8]}, "hidden": 8},
        "training": {"steps": 12, "batch": 7, "validate_every": 4, "log_every": 1, "device": "cpu"},
    }
    with Dataset.open(grey) as dataset:
        settings = complete_settings(values, dataset)
    for progress in train_model(grey, settings, out):
        if begin and progress.done >= begin:
            break
    return out


def test_a_resumed_run_sees_the_same_pixels(grey: Path, tmp_path: Path) -> None:
    whole = trained(grey, tmp_path / "whole.safetensors")
    broken = trained(grey, tmp_path / "broken.safetensors", begin=6)
    broken = trained(grey, broken)
    (one, tensors), (other, again) = read_checkpoint(whole, "model"), read_checkpoint(broken, "model")
    assert one.facts["validation_bound"] == other.facts["validation_bound"]
    assert all(tensor.equal(again[name]) for name, tensor in tensors.items())
    assert one.settings["data"]["modalities"]["image"]["layout"] == "probabilities"


def test_scores_say_that_pixels_were_drawn_and_follow_from_the_seed(grey: Path, tmp_path: Path) -> None:
    loaded = load(trained(grey, tmp_path / "model.safetensors"), "cpu")
    values = []
    with Dataset.open(grey) as dataset:
        for seed in (0, 0, 1):
            settings = EvaluationSettings(samples=50, seed=seed, proposal="image")
            evaluation = Evaluation(loaded, dataset, None, ("prior",), settings)
            assert set(evaluation.data_points.values["image"].unique().tolist()) <= {0.0, 1.0}
            scores = evaluate(evaluation, ["log-likelihood", "active-units"]).run()
            assert {score.details["pixels"] for score in scores} == {"drawn"}
            values.append(scores[0].value)
    assert values[0] == values[1] != values[2]


def test_stored_probabilities_are_not_taken_for_pixels(grey: Path, tmp_path: Path) -> None:
    loaded = load(trained(grey, tmp_path / "model.safetensors"), "cpu")
    with Dataset.open(grey) as dataset:
        with pytest.raises(UsageError, match=r"use Dataset\.read_pixels, which draws them"):
            loaded.encode(dataset.read_image("image", slice(3)))
        assert loaded.encode(dataset.read_pixels("image", slice(3))).mean.shape == (3, 2)
