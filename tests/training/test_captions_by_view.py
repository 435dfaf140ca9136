"""Several captions of a picture: stored together, drawn anew at each sight in training, the first elsewhere."""

from pathlib import Path

import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import Dataset, DatasetWriter, read_checkpoint, read_latents
from mmgen.core.errors import ArtifactError
from mmgen.modalities.text import TextDescription
from mmgen.posteriors._encode import LatentRows
from mmgen.training.batches import DatasetRows
from mmgen.training.model_run import complete_settings, train_model

WORDS = ("a", "b", "c", "d")
PADDING, LENGTH, CAPTIONS, N = 4, 2, 3, 60
CPU = torch.device("cpu")


def captions(n: int = N) -> np.ndarray:
    """Captions uint16 [n, 3, 2]: of example i there are i mod 4, all different."""
    codes = np.full((n, CAPTIONS, LENGTH), PADDING, np.uint16)
    for i in range(n):
        for k in range(i % 4):
            codes[i, k] = (k, i % 2)
    return codes


def write(path: Path, codes: np.ndarray, number: int = N) -> Path:
    with DatasetWriter(path, size=number, settings={"recipe": "test"}, seed=0) as writer:
        writer.add_image("image", (1, 4, 4))
        writer.add_text("text", WORDS, LENGTH, captions=CAPTIONS)
        writer.write(0, {"image": np.arange(number * 16, dtype=np.uint8).reshape(number, 1, 4, 4), "text": codes})
        rows = np.arange(number)
        writer.add_splits(
            "iid", train=rows[: number - 20], val=rows[number - 20 : number - 10], test=rows[number - 10 :]
        )
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("captions") / "d.h5", captions())


def test_the_file_holds_all_and_reads_the_first(path: Path) -> None:
    with Dataset.open(path) as dataset:
        info = dataset.texts["text"]
        assert (info.captions, info.length, info.event_shape) == (CAPTIONS, LENGTH, (LENGTH,))
        assert info.describe_size() == "text of at most 2 words, up to 3 for each example"
        assert np.array_equal(dataset.read_captions("text"), captions())
        for first in (dataset.read_text("text"), dataset.read("text"), dataset.read_values("text")):
            assert np.array_equal(first, captions()[:, 0])


def test_evaluations_see_the_first_and_each_step_of_training_draws_one(path: Path) -> None:
    everything, steps = captions(), 900
    with Dataset.open(path) as dataset:
        rows = DatasetRows(dataset, np.arange(N), CPU, seed=5)
        indices = torch.arange(N)
        assert np.array_equal(rows.batch(indices).values["text"], everything[:, 0])
        counts = np.zeros((N, CAPTIONS))
        for step in range(steps):
            seen = rows.view(indices, 0, "step", step).values["text"].numpy()
            assert seen.dtype == np.int64
            for i in range(N):
                places = (everything[i] == seen[i]).all(1).nonzero()[0]
                assert len(places), "what is seen is a caption of the example"
                counts[i, places[0]] += 1
    for i in range(N):
        present = max(1, i % 4)
        assert (counts[i, present:] == 0).all(), "captions that it lacks are never drawn"
        # Five standard errors of a share of 900 draws.
        assert abs(counts[i, :present] / steps - 1 / present).max() < 5 * np.sqrt(0.25 / steps)


def test_a_draw_depends_on_seed_step_and_row_alone(path: Path) -> None:
    with Dataset.open(path) as dataset:
        every = DatasetRows(dataset, np.arange(N), CPU).view(torch.arange(N), 3, "step", 7).values["text"]
        some = np.array([59, 3, 30])
        again = DatasetRows(dataset, np.sort(some), CPU).view(torch.tensor([2, 0, 1]), 3, "step", 7).values["text"]
        assert torch.equal(again, every[some])
        others = [
            DatasetRows(dataset, np.arange(N), CPU).view(torch.arange(N), *view).values["text"]
            for view in ((4, "step", 7), (3, "step", 8), (3, "validation"))
        ]
        assert all(not torch.equal(every, other) for other in others)


def test_captions_in_a_wrong_order_or_number_are_refused(tmp_path: Path) -> None:
    codes = captions()
    codes[3, 0] = PADDING
    with pytest.raises(ValueError, match="an empty caption stands before another"):
        write(tmp_path / "d.h5", codes)
    info = TextDescription(vocabulary=WORDS, length=LENGTH, captions=CAPTIONS)

    class Element:
        location = "d.h5: /modalities/text"

        def text(self, name: str) -> str:
            return info.text_attributes()[name]

        def shape(self, array: str = "") -> tuple[int, ...]:
            return (N, 2000, LENGTH)

    with pytest.raises(ArtifactError, match="2000 captions an example, expected 1 to 1000"):
        TextDescription.read("text", Element())


def trained(path: Path, out: Path, begin: int = 0) -> Path:
    """Twelve steps; ``begin`` stops after that many, as a killed process would."""
    values = {
        "objective": {"name": "telbo"},
        "model": {"latent_size": 2, "image_network": {"name": "mlp", "hidden": [8]}, "hidden": 8},
        "training": {"steps": 12, "batch": 7, "validate_every": 4, "log_every": 1, "device": "cpu"},
    }
    with Dataset.open(path) as dataset:
        settings = complete_settings(values, dataset)
    for progress in train_model(path, settings, out):
        if begin and progress.done >= begin:
            break
    return out


@pytest.mark.slow
def test_a_resumed_training_draws_the_same_captions(path: Path, tmp_path: Path) -> None:
    whole = trained(path, tmp_path / "whole.safetensors")
    broken = trained(path, tmp_path / "broken.safetensors", begin=6)
    broken = trained(path, broken)
    (_, tensors), (_, again) = read_checkpoint(whole, "model"), read_checkpoint(broken, "model")
    assert all(tensor.equal(again[name]) for name, tensor in tensors.items())


@pytest.mark.slow
def test_a_fit_learns_from_all_captions_of_its_encodings(path: Path, tmp_path: Path) -> None:
    model, cache = trained(path, tmp_path / "model.safetensors"), tmp_path / "latents.h5"
    mmgen.fit_aggregate(
        model, tmp_path / "fit.safetensors", given="text", family="gaussian", latents=cache, device="cpu",
        settings={"training": {"steps": 4, "batch": 8}},
    )  # fmt: skip
    latents, everything = read_latents(cache), captions()
    assert np.array_equal(latents.columns["text"].reshape(-1, CAPTIONS, LENGTH), everything[latents.rows])
    with Dataset.open(path) as dataset:
        data = complete_settings({"objective": {"name": "telbo"}}, dataset).data
    rows = LatentRows(latents, np.arange(len(latents.rows)), data, CPU)
    indices = torch.arange(len(rows))
    assert np.array_equal(rows.batch(indices).values["text"], everything[latents.rows, 0])
    drawn = np.stack([rows.view(indices, 0, "step", step).values["text"] for step in range(50)])
    for place, row in enumerate(latents.rows):
        expected = {tuple(each) for each in everything[row, : max(1, row % 4)].tolist()}
        assert {tuple(each) for each in drawn[:, place].tolist()} == expected
