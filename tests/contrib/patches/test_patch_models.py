"""Patches as models see them: noise anew in every view, a density of all numbers, and from a file to a score."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.contrib.patches.modalities.patch import PatchDescription
from mmgen.core.views import dequantise
from mmgen.training.batches import DatasetRows
from tests.program import exit_code

CPU = torch.device("cpu")
SIDE = 3


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("patches") / "patches.h5"
    levels = np.random.default_rng(0).integers(0, 256, (120, SIDE, SIDE), np.uint8)
    with DatasetWriter(path, 120, {"recipe": "patches", "side": SIDE}, seed=0, command="make") as writer:
        writer.add(PatchDescription(side=SIDE))
        writer.write(0, {"patch": levels})
        writer.add_splits("official", train=range(80), val=range(80, 100), test=range(100, 120))
    return path


def test_numbers_are_levels_with_noise_less_their_mean(patches: Path) -> None:
    """The dropped pixel comes back as minus the sum; differences of pixels are those of levels, within one level."""
    with Dataset.open(patches) as dataset:
        rows = DatasetRows.open_split(dataset, "official", "test", CPU)
        levels = dataset.read("patch", np.arange(100, 120)).reshape(20, -1).astype(float)
        seen = rows.batch(torch.arange(20)).values["patch"].double().numpy()
    whole = 256 * np.concatenate([seen, -seen.sum(1, keepdims=True)], 1)
    noise = (whole - whole[:, :1]) - (levels - levels[:, :1])
    assert seen.shape == (20, SIDE**2 - 1) and np.abs(noise).max() < 1
    assert np.abs(noise).max() > 0.5


def test_training_draws_noise_in_every_view_and_evaluations_once(patches: Path) -> None:
    """The draw of a row depends on the row and the view alone; evaluations see one draw, whatever their seed."""
    with Dataset.open(patches) as dataset:
        rows = DatasetRows.open_split(dataset, "official", "train", CPU)
        some = torch.tensor([5, 2])
        first, again, other = (rows.view(some, 0, "step", n).values["patch"] for n in (0, 0, 1))
        assert first.equal(again) and not first.equal(other)
        assert rows.view(some[1:], 0, "step", 0).values["patch"].equal(first[1:])
        assert not rows.view(some, 1, "step", 0).values["patch"].equal(first)
        assert rows.view(some, 0).values["patch"].equal(rows.view(some, 1).values["patch"])


def test_noise_is_uniform_within_a_level() -> None:
    drawn = 256 * dequantise(torch.full((4000, 5), 9, dtype=torch.uint8), torch.arange(4000), 7) - 9
    assert float(drawn.min()) > 0 and float(drawn.max()) < 1
    assert float(drawn.mean()) == pytest.approx(0.5, abs=5 * math.sqrt(1 / 12 / 20_000))
    assert float(drawn.var()) == pytest.approx(1 / 12, abs=0.003)
    assert float(np.corrcoef(drawn.numpy().T)[0, 1]) == pytest.approx(0, abs=5 / math.sqrt(4000))


def test_the_density_is_one_of_the_numbers_themselves() -> None:
    """log N(x; 0.1 m, 0.1 s) summed: measured in units of 0.1 inside, normalised over x."""
    modality = PatchDescription(side=SIDE).modality()
    generator = torch.Generator().manual_seed(0)
    mean, log_sd, x = (torch.randn(4, 8, generator=generator, dtype=torch.float64) for _ in range(3))
    present = torch.ones(4, dtype=torch.bool)
    expected = torch.distributions.Normal(0.1 * mean, 0.1 * log_sd.exp()).log_prob(x).sum(1)
    torch.testing.assert_close(modality.log_prob(torch.cat([mean, log_sd], 1), x, present), expected)
    torch.testing.assert_close(modality.mean(torch.cat([mean, log_sd], 1)), 0.1 * mean)
    drawn = modality.sample(torch.zeros(20_000, 16, dtype=torch.float64), generator)
    assert float(drawn.std()) == pytest.approx(0.1, rel=0.01)
    described = PatchDescription()
    assert (described.size, described.nats_per_bit) == (63, pytest.approx(63 * math.log(2)))


@pytest.mark.slow_cases("elbo", "iwae")
@pytest.mark.parametrize("objective", ["elbo", "iwae"])
def test_from_a_file_to_nats_and_bits(
    objective: str, patches: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.safetensors"
    settings = {
        "objective.name": objective, "objective.samples": 2, "objective.modalities": ["patch"],
        "objective.given": ["patch"], "model.latent_size": 2, "model.networks.patch.hidden": [16], "training.steps": 3,
        "training.batch": 16,
    }  # fmt: skip
    assignments = [part for key, value in settings.items() for part in ("--set", f"{key}={json.dumps(value)}")]
    assert exit_code("train", patches, "-o", model, *assignments) == 0
    capsys.readouterr()
    assert exit_code("eval", model, "--metric", "log-likelihood", "--number", "10", "--samples", "20", "--json") == 0
    scores = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {score["protocol"] for score in scores} == {"importance", "bound"}
    for score in scores:
        assert score["details"]["bits_per_pixel"] == pytest.approx(score["value"] / (8 * math.log(2)))
        assert score["details"]["bits_per_pixel_stderr"] == pytest.approx(score["stderr"] / (8 * math.log(2)))
    assert exit_code("plot", "filters", model, "-o", tmp_path / "f.png") == 0
    assert (tmp_path / "f.png").stat().st_size > 5000
