"""Encodings and aggregates of a model with several layers of z, against a linear ladder whose every moment is known."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import mmgen
import mmgen.densities
from mmgen.artifacts import Latents, find_parent, read_latents, write_latents
from mmgen.core.batch import Batch
from mmgen.core.errors import ArtifactError, SettingsError, UsageError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.models.hierarchical_vae import HierarchicalVAE
from mmgen.posteriors import Aggregate, complete_fit_settings, encode_points, fit_aggregate, load_aggregate
from mmgen.posteriors._aggregate import Layers
from mmgen.posteriors.aggregate import AggregatedTask
from mmgen.settings.config import merge
from mmgen.testing.linear_gaussian import NOISE, WEIGHTS
from mmgen.training.model_run import load_model, train_model
from tests.models.linear_ladder import LAYER_SD, UP, ladder_observations, linear_ladder, lower_covariance
from tests.posteriors.test_encodings import settings_of, write_dataset

COUNT = 40_000
SD, TOP_SD = 0.5, 0.9  # of q(z1|x) and of q(z2|z1), see linear_ladder


def exact_covariance() -> Tensor:
    """Covariance of [z1, z2] under the aggregate posterior: z1 = P x + 0.5 e, z2 = Q z1 + 0.9 e, x drawn from p."""
    weights = WEIGHTS["image"]
    x = weights @ lower_covariance() @ weights.T + NOISE**2 * torch.eye(4, dtype=torch.float64)
    p, q = 0.8 * torch.linalg.pinv(weights), 0.5 * torch.linalg.pinv(UP)
    lower = p @ x @ p.T + SD**2 * torch.eye(2, dtype=torch.float64)
    upper = q @ lower @ q.T + TOP_SD**2 * torch.eye(3, dtype=torch.float64)
    return torch.cat([torch.cat([lower, lower @ q.T], 1), torch.cat([q @ lower, upper], 1)])


@pytest.fixture(scope="module")
def model() -> HierarchicalVAE:
    return linear_ladder().eval()


@pytest.fixture(scope="module")
def encodings(model: HierarchicalVAE) -> DiagonalGaussian:
    points = ladder_observations(COUNT)
    return encode_points(model, points, ("image",), "32-true", torch.Generator().manual_seed(1))


def fitted(model: HierarchicalVAE, encodings: DiagonalGaussian, layers: Layers, steps: int = 400) -> Aggregate:
    """The Gaussian family fitted to q(z), as fit-aggregate does it."""
    torch.manual_seed(0)
    latent = model.latent if layers == "all" else model.latent.of_layer(model.latent.top)
    family = mmgen.densities.get("gaussian")(hidden=())
    aggregate = Aggregate(latent, None, family, layers=layers).double().attach_model(model)
    mean, log_sd = aggregate.select_layers(encodings.mean), aggregate.select_layers(encodings.log_sd)
    aggregate.standardise(mean, log_sd)
    task = AggregatedTask(aggregate, keep_all=1.0)
    optimiser = torch.optim.Adam(aggregate.parameters(), 0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        rows = torch.randint(0, COUNT, (2048,))
        present = torch.ones(2048, dtype=torch.bool)
        batch = Batch({"mean": mean[rows], "log_sd": log_sd[rows]}, {"mean": present, "log_sd": present})
        optimiser.zero_grad()
        (-task(batch, None).value.mean()).backward()
        optimiser.step()
        schedule.step()
    return aggregate.eval()


def test_encodings_of_all_layers_are_draws_of_the_aggregate_posterior(encodings: DiagonalGaussian) -> None:
    """Correlations between layers too; the error of a covariance of 40,000 draws is at most 2 / sqrt(40,000) here."""
    z = encodings.sample(torch.Generator().manual_seed(2))
    torch.testing.assert_close(z.T.cov(), exact_covariance(), rtol=0, atol=5 * 2 / COUNT**0.5)
    assert (encodings.log_sd[:, :2] == -7).all() and (encodings.log_sd[:, 2:].exp() - TOP_SD).abs().max() < 1e-12


def test_a_gaussian_over_all_layers_has_the_moments_of_the_aggregate_posterior(
    model: HierarchicalVAE, encodings: DiagonalGaussian
) -> None:
    """Minus KL is largest where means and variances are those of the target: each sd within 3 %, each mean within 3 %
    of an sd, of which the encodings' own sampling error is 0.5 %."""
    aggregate = fitted(model, encodings, "all")
    with torch.no_grad():
        z = aggregate.sample(None, 200_000, torch.Generator().manual_seed(3))[:, 0]
    sd = exact_covariance().diagonal().sqrt()
    assert z.shape == (200_000, 5)
    assert (z.mean(0) / sd).abs().max() < 0.03
    assert (z.std(0) / sd - 1).abs().max() < 0.03


def test_of_the_top_layer_what_lies_below_is_the_models_own(
    model: HierarchicalVAE, encodings: DiagonalGaussian
) -> None:
    """q(z2) p(z1|z2), as a density and as draws: z1 = A z2 + s e."""
    aggregate = fitted(model, encodings, "top")
    with torch.no_grad():
        z = aggregate.sample(None, 200_000, torch.Generator().manual_seed(3))[:, 0]
        lower, upper = z[:, :2], z[:, 2:]
        sd = exact_covariance().diagonal().sqrt()[2:]
        assert (upper.std(0) / sd - 1).abs().max() < 0.03
        left = lower - upper @ UP.T
        torch.testing.assert_close(left.T.cov(), LAYER_SD**2 * torch.eye(2).double(), rtol=0, atol=0.01)
        some = z[:50]
        own = DiagonalGaussian(some[:, 2:] @ UP.T, torch.full((50, 2), LAYER_SD).double().log()).log_prob(some[:, :2])
        standardised = (some[:, 2:] - aggregate.shift) / aggregate.scale
        expected = aggregate.density.log_prob(standardised, None) - aggregate.scale.log().sum() + own
        torch.testing.assert_close(aggregate.log_prob(some, None), expected)
        drawn, _, log_q = aggregate.sample_with_log_prob(None, 1)
        torch.testing.assert_close(log_q, aggregate.log_prob(drawn, None))
        assert drawn.shape == (1, 1, 5)


def test_a_prior_is_its_top_and_what_lies_below(model: HierarchicalVAE) -> None:
    z = model.posterior(ladder_observations(20), ()).sample(torch.Generator().manual_seed(0))
    top = DiagonalGaussian.standard(20, 3, like=z).log_prob(z[:, 2:])
    torch.testing.assert_close(model.log_prior(z), top + model.log_prob_lower_layers(z))
    torch.testing.assert_close(model.sample_lower_layers(z[:, 2:])[:, 2:], z[:, 2:])


def write(path: Path, **more: Any) -> Latents:
    noise = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    arrays = {"mean": noise, "log_sd": noise, "rows": np.arange(6)}
    write_latents(path, **arrays, columns={}, split="iid", settings={}, seed=0, **more)
    return read_latents(path)


def test_files_name_their_layers(tmp_path: Path) -> None:
    plain, named = write(tmp_path / "a.h5"), write(tmp_path / "b.h5", layers={"z1": 2, "z2": 3})
    assert (plain.layers, named.layers) == ({"z": 5}, {"z1": 2, "z2": 3})
    one = write(tmp_path / "c.h5", layers={"z": 5})
    assert one.header.content_id == plain.header.content_id != named.header.content_id
    with pytest.raises(ValueError, match="which do not fit together"):
        write(tmp_path / "d.h5", layers={"z1": 2, "z2": 2})


@pytest.mark.parametrize("text", ['{"z1": 2, "z2": 2}', "[2, 3]", '{"z1": 5.0}', '{"z1": -1, "z2": 6}', "{"])
def test_layers_that_are_none_are_refused(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmgen.artifacts.latents.json", SimpleNamespace(dumps=lambda _: text))
    with pytest.raises(ArtifactError, match="do not fit together"):
        write(tmp_path / "a.h5", layers={"z1": 2, "z2": 3})


LADDER: dict[str, Any] = {
    "model": {
        "name": "hierarchical-vae",
        "latent_sizes": [3, 2],
        "hidden": [8],
        "image_network": {"name": "mlp", "hidden": [8]},
    },
    "training": {"steps": 2, "batch": 8, "device": "cpu"},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mmgen.artifacts import Dataset
    from mmgen.training.model_run import complete_settings

    data = write_dataset(tmp_path_factory.mktemp("ladder") / "tiny.h5")
    with Dataset.open(data) as dataset:
        settings = complete_settings(LADDER | {"objective": {"name": "elbo", "modalities": ["image"]}}, dataset)
    out = data.with_name("ladder.safetensors")
    train_model(data, settings, out).run()
    return out


@pytest.mark.parametrize("layers", ["all", "top"])
@pytest.mark.parametrize("given", ["attributes", "nothing"])
def test_from_a_trained_ladder_to_pictures(trained: Path, tmp_path: Path, layers: Layers, given: str) -> None:
    tiny = {"aggregate": {"family": {"name": "gaussian"}, "given": given, "layers": layers}}
    tiny |= {"training": {"steps": 2, "batch": 8, "device": "cpu"}}
    settings = complete_fit_settings(tiny, load_model(trained)[1])
    assert settings.file_name_part.endswith("-top") == (layers == "top")
    out = trained.with_name(f"{given}-{layers}.safetensors")
    for work in fit_aggregate(trained, trained.with_name("tiny.h5"), settings, out):
        work.run()
    assert read_latents(find_parent(out, "latents")).layers == {"z1": 3, "z2": 2}
    assert load_aggregate(out)[1].aggregate.layers == layers
    loaded = mmgen.load(out)
    words = {"size": "big"} if given == "attributes" else {}
    assert loaded.sample(words, n=3, posterior="aggregate").shape == (3, 1, 16, 16)
    batch = loaded.describe("size=big")
    z = loaded.posteriors["aggregate"].sample(batch, 4, torch.Generator().manual_seed(0))
    assert z.shape == (4, 1, 5)
    assert torch.isfinite(loaded.posteriors["aggregate"].log_prob(z, batch)).all()
    size = 2 if layers == "top" else 5
    assert loaded.fitted is not None
    assert loaded.fitted.aggregate.latent.size == len(loaded.fitted.aggregate.shift) == size


def test_an_optimiser_of_kernels_is_refused_before_anything_is_encoded(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "tiny.h5")
    model = tmp_path / "flat.safetensors"
    train_model(data, settings_of(data), model).run()
    there = set(tmp_path.iterdir())
    settings = complete_fit_settings({"training": {"optimizer": "muon"}}, load_model(model)[1])
    with pytest.raises(SettingsError, match=r"muon, which is for kernels, but the trained parameters have none"):
        fit_aggregate(model, data, settings, tmp_path / "a.safetensors")
    assert set(tmp_path.iterdir()) == there


def test_a_flat_model_has_no_top(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "tiny.h5")
    model = tmp_path / "flat.safetensors"
    train_model(data, settings_of(data), model).run()
    settings = complete_fit_settings(merge({"aggregate": {"layers": "top"}}, {}), load_model(model)[1])
    with pytest.raises(UsageError, match=r"--layers got top, .* has no layer above another, expected all"):
        fit_aggregate(model, data, settings, tmp_path / "a.safetensors")
