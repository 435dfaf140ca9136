"""Planted faults of drawn pictures, each of which moves the measure that was made for it, and no other by much."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from mmgen.artifacts import Dataset
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.metrics._base import evaluate
from mmgen.metrics.sharpness import measure_details
from mmgen.metrics.truth import mean_psnr
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.results.score import Score
from tests.metrics.toy import CPU, Painter, loaded_painter
from tests.small_data import write_small

SHAPES, GROUNDS = ("square", "disc", "cross"), ("light", "grey", "night")
IMAGE = ImageDescription(shape=(1, 32, 32), layout="bytes")
INFO = AttributesDescription(name="attributes", names=("shape", "ground"), values=(SHAPES, GROUNDS))
NIGHT_SQUARE = (0, 2)


def paint(shape: int, ground: int) -> np.ndarray:
    """Draw a shape [1, 32, 32] on a ground, from 0 to 1."""
    y, x = np.mgrid[-16:16, -16:16] + 0.5
    inside = (
        (abs(x) < 8) & (abs(y) < 8), x**2 + y**2 < 81, (abs(x) < 3) & (abs(y) < 10) | (abs(y) < 3) & (abs(x) < 10),
    )[shape]  # fmt: skip
    return np.where(inside, 1.0, (0.7, 0.4, 0.1)[ground])[None]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Every combination as often, its pictures moved by up to two pixels, half of them for training."""
    codes = np.stack([np.arange(180) % 3, np.arange(180) // 3 % 3], 1).astype(np.uint8)
    moves = np.random.default_rng(0).integers(-2, 3, (180, 2))
    pictures = [np.roll(paint(*code), move, (1, 2)) for code, move in zip(codes, moves, strict=True)]
    values = {"image": np.round(255 * np.stack(pictures)).astype(np.uint8), "attributes": codes}
    return Dataset.open(write_small(tmp_path_factory.mktemp("faults") / "data.h5", values, INFO, parts=(90, 9)))


class Reader:
    """Reads the nearest combination off a picture."""

    names, values, hints, network_name, described, device = INFO.names, INFO.values, (), "reader", IMAGE, CPU
    accuracy, content_id = {"shape": 100.0, "ground": 100.0, "mean": 100.0}, "r"

    def predict(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
        known = [(shape, ground) for shape in range(3) for ground in range(3)]
        places = [
            torch.from_numpy(np.roll(paint(*code), move, (1, 2))).flatten()
            for code in known
            for move in np.ndindex(5, 5)
            for move in [np.subtract(move, 2)]
        ]
        nearest = torch.cdist(images.flatten(1).double(), torch.stack(places)).argmin(1) // 25
        return torch.tensor(known, dtype=torch.uint8)[nearest]


Fault = Callable[[Tensor, Tensor], Tensor]
"""Function from a picture [1, 32, 32] and its codes to another picture."""


class Faulty(Painter):
    """Draws what is asked, with a fault."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def mean(self, name: str, z: Tensor, condition: Any = None) -> Tensor:
        codes = z.round().long()
        return torch.stack([self.fault(torch.from_numpy(paint(*code)).float(), code) for code in codes])


def measure(dataset: Dataset, fault: Fault, *metrics: str, **settings: Any) -> dict[str, Score]:
    loaded = loaded_painter(Path("m.safetensors"), dataset.header.content_id)
    loaded.model, loaded.observation, loaded.attributes = Faulty(fault), IMAGE, INFO
    loaded.observed = {"image": IMAGE}
    chosen = EvaluationSettings(**{"draws": 4, "dropped": (0,), **settings})
    evaluation = Evaluation(loaded, dataset, Reader(), ("own",), chosen)  # type: ignore[arg-type]
    return {score.quantity: score for score in evaluate(evaluation, metrics).run()}


def none(picture: Tensor, code: Tensor) -> Tensor:
    return picture


def one_class_blurred(picture: Tensor, code: Tensor) -> Tensor:
    return avg_pool2d(picture, 5, 1, 2, count_include_pad=False) if code[0] == 0 else picture


def woven(picture: Tensor, code: Tensor) -> Tensor:
    """A lattice of four pixels and 5 grey levels."""
    lattice = torch.tensor([1.0, 1.0, -1.0, -1.0]).repeat(8) * 5 / 255
    return picture + lattice * lattice.sign()[:, None] - 6 / 255


def one_cell_wrong(picture: Tensor, code: Tensor) -> Tensor:
    return torch.from_numpy(paint(1, 2)).float() if tuple(code.tolist()) == NIGHT_SQUARE else picture


def test_a_model_without_faults_is_as_sharp_as_real_pictures(dataset: Dataset) -> None:
    scores = measure(dataset, none, "sharpness", "truth")
    assert scores["fine detail"].value == pytest.approx(100.0, abs=0.1)  # of the same shapes, moved
    assert scores["steepest edges"].value == pytest.approx(100.0, abs=0.1)
    assert scores["weave"].value == pytest.approx(0.0, abs=0.01) == scores["weave"].details["ceiling"]
    assert scores["nearest has the words"].value == 100
    truth = scores["nearest true picture"]
    assert truth.value > truth.details["ceiling"] - 3  # unmoved, as most real ones are not


def test_a_class_that_is_blurred_takes_fine_detail_and_edges(dataset: Dataset) -> None:
    scores, sound = (measure(dataset, fault, "sharpness", "truth") for fault in (one_class_blurred, none))
    assert scores["fine detail"].value < 80 and scores["steepest edges"].value < 80
    assert scores["weave"].value < 1
    assert scores["nearest true picture"].value < sound["nearest true picture"].value
    assert scores["nearest has the words"].value > 80


def test_a_lattice_is_weave(dataset: Dataset) -> None:
    weave = measure(dataset, woven, "sharpness")["weave"]
    assert 4 < weave.value < 6  # grey levels, as planted
    assert weave.stderr is not None and weave.value - 5 * weave.stderr > weave.details["ceiling"]
    assert (weave.unit, weave.better) == ("grey levels", "lower")


def test_a_cell_drawn_wrongly_has_a_truth_of_other_words(dataset: Dataset) -> None:
    scores = measure(dataset, one_cell_wrong, "truth")
    assert scores["nearest has the words"].value == pytest.approx(100 * 8 / 9)
    assert scores["nearest has the words"].by_attribute == pytest.approx({"shape": 100 * 8 / 9, "ground": 100.0})


@pytest.mark.parametrize("metric", ["correctness", "reconstruction"])
def test_a_cell_drawn_wrongly_is_the_worst_pair(dataset: Dataset, metric: str) -> None:
    """One of nine cells hides in a mean of 94 % right, of drawn and of decoded pictures; real pictures have none."""
    (score,), (sound,) = (measure(dataset, fault, metric).values() for fault in (one_cell_wrong, none))
    assert score.value == pytest.approx(100 * 17 / 18, abs=0.5)
    assert score.details["all_right"] == pytest.approx(100 * 8 / 9, abs=1)
    assert (score.details["worst_pair_name"], score.details["worst_pair"]) == ("square night", 0.0)
    assert score.details["worst_word"] == pytest.approx(100 * 2 / 3, abs=2)
    assert score.details["worst_word_name"] in ("square", "night")
    assert sound.details["worst_pair"] == 100 == sound.details["all_right"]
    if metric == "correctness":
        assert score.details["real_worst_pair"] == 100 == score.details["real_all_right"]


def test_pictures_are_compared_by_hand() -> None:
    line = np.zeros((1, 1, 9, 9), np.uint8)
    line[..., 4] = 255
    laplacian, steepest, residue, even = measure_details(line)[0]
    assert laplacian == pytest.approx((4 + 1 + 1) / 7)  # -2 on the line, 1 on both sides, of seven columns
    assert steepest == 1.0
    assert (residue, even) == (0.0, 0.0)  # 9 x 9 is all within reach of the line
    flat = np.full((2, 1, 9, 9), 7, np.uint8)
    assert measure_details(flat) == pytest.approx(np.array([[0.0, 0.0, 0.0, 1.0]] * 2))
    assert mean_psnr(flat, flat) == pytest.approx(10 * np.log10(12 * 255**2))
    assert mean_psnr(flat[:1], flat[:1] + 255, leave_itself_out=False) == pytest.approx(-20 * np.log10(1 / 255))
