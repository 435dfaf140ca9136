"""A conditional VAE with a learned prior p(z | y), against closed forms and numerical integrals."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import mmgen
from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.mixture import GaussianMixture
from mmgen.models import LearnedPrior, PriorNetwork, build_model
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.objectives.cvae import Cvae
from mmgen.objectives.elbo import Elbo
from mmgen.testing.small import SMALL_DATA, SMALL_MODEL, small_batch

KINDS = {"gaussian": PriorNetwork(hidden=(8,)), "mixture": PriorNetwork(components=3, hidden=(8,))}


def make(prior: PriorNetwork | None, latent_size: int = 3) -> MultimodalVAE:
    torch.manual_seed(0)
    settings = SMALL_MODEL.model_copy(update={"prior": prior, "latent_size": latent_size})
    model = build_model(settings, Cvae().demands, SMALL_DATA)
    assert isinstance(model, MultimodalVAE)
    return model.double().eval()


def batch_of(size: int = 5, known: bool = True) -> Batch:
    batch = small_batch(size)
    values = {**batch.values, "image": batch.values["image"].double()}
    return Batch(values, {**batch.present, "attributes": batch.present["attributes"] & known})


def grid(points: int = 4_001) -> tuple[Tensor, float]:
    """A line of z [N, 1, 1] that holds all mass of priors near the origin, and the distance of its points."""
    z = torch.linspace(-20, 20, points, dtype=torch.float64)
    return z[:, None, None], float(z[1] - z[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_prior_integrates_to_one_and_is_drawn_as_it_says(kind: str) -> None:
    model, batch, (z, step) = make(KINDS[kind], 1), batch_of(3), grid()
    prior = model.posterior(batch, ("attributes",))
    density = prior.log_prob(z).exp()  # [N, 3]
    torch.testing.assert_close(density.sum(0) * step, torch.ones(3, dtype=torch.float64))
    drawn = prior.sample(torch.Generator().manual_seed(0), (4_000,))
    mean = (density * z[..., 0]).sum(0) * step
    torch.testing.assert_close(drawn.mean(0)[:, 0], mean, atol=0.1, rtol=0)
    assert prior.log_prob(z).std(1).max() > 1e-3, "the words change nothing"


def test_the_divergence_from_a_gaussian_is_that_of_torch() -> None:
    model, batch = make(KINDS["gaussian"]), batch_of()
    q, p = model.posterior(batch, ("image", "attributes")), model.prior(batch)
    assert isinstance(p, DiagonalGaussian)
    expected = torch.distributions.kl_divergence(
        torch.distributions.Normal(q.mean, q.sd), torch.distributions.Normal(p.mean, p.sd)
    ).sum(-1)
    torch.testing.assert_close(model.trace(batch, ("image", "attributes")).total_divergence, expected)
    assert (expected - q.kl(DiagonalGaussian.standard(*q.mean.shape, like=q.mean))).abs().max() > 1e-3


def test_the_divergence_from_a_mixture_is_right_in_the_mean() -> None:
    model, batch, (z, step) = make(KINDS["mixture"], 1), batch_of(), grid()
    q, p = model.posterior(batch, ("image", "attributes")), model.prior(batch)
    assert isinstance(p, GaussianMixture)
    log_q = q.log_prob(z)
    expected = (log_q.exp() * (log_q - p.log_prob(z))).sum(0) * step
    torch.manual_seed(0)
    drawn = model.trace(batch, ("image", "attributes"), 4_000, names=()).divergence["z"]  # [K, B]
    error = drawn.std(0) / len(drawn) ** 0.5
    assert ((drawn.mean(0) - expected).abs() < 5 * error).all()


def exact_log_likelihood(model: MultimodalVAE, batch: Batch, points: int = 4_001) -> Tensor:
    """log p(x | y) [B] of a model of one latent, by integration over z."""
    z, step = grid(points)
    z = z.expand(-1, batch.size, 1)
    terms = [model.log_likelihood("image", part, batch) + model.prior(batch).log_prob(part) for part in z.split(500)]
    return torch.cat(terms).logsumexp(0) + torch.tensor(step).log()


@pytest.mark.parametrize(("kind", "known"), [*itertools.product(KINDS, (True, False))])
@torch.no_grad()
def test_elbo_and_importance_weights_bound_the_integral(kind: str, known: bool) -> None:
    model, batch = make(KINDS[kind], 1), batch_of(known=known)
    exact = exact_log_likelihood(model, batch)
    torch.manual_seed(0)
    trace = model.trace(batch, ("image", "attributes"), 4_000)
    log_weight = trace.log_weight()
    torch.testing.assert_close(log_weight.logsumexp(0) - torch.tensor(4_000.0).log(), exact, atol=0.1, rtol=0)
    assert (log_weight.mean(0) < exact).all()
    bound = torch.stack([Cvae()(model, batch).value for _ in range(100)])
    spread = 5 * bound.std(0) / 10
    assert ((bound.mean(0) - log_weight.mean(0)).abs() < spread).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_reaches_every_parameter_of_the_prior(kind: str) -> None:
    model = make(KINDS[kind]).train()
    (-Cvae(hidden_share=0.3)(model, batch_of(), step=10).value.mean()).backward()
    prior = model.learned_prior
    assert isinstance(prior, LearnedPrior)
    assert all(each.grad is not None and each.grad.abs().sum() > 0 for each in prior.parameters())
    assert any(network is prior for network in model.generative_networks())


def test_open_words_are_seen_as_open() -> None:
    """The code behind an unknown word changes nothing; that it is unknown does."""
    model, batch = make(KINDS["gaussian"]), batch_of()
    hidden = Batch(batch.values, {**batch.present, "attributes": torch.zeros(5, 2, dtype=torch.bool)})
    other = Batch({**batch.values, "attributes": batch.values["attributes"] * 0 + 1}, hidden.present)
    p, q, known = (model.prior(each) for each in (hidden, other, batch))
    assert isinstance(p, DiagonalGaussian) and isinstance(q, DiagonalGaussian) and isinstance(known, DiagonalGaussian)
    torch.testing.assert_close(p.mean, q.mean)
    assert (p.mean - known.mean).abs().max() > 1e-4


def test_without_the_setting_the_prior_is_standard() -> None:
    model, batch = make(None), batch_of()
    z = torch.randn(4, 5, 3, dtype=torch.float64)
    torch.testing.assert_close(model.posterior(batch, ("attributes",)).log_prob(z), model.log_prior(z))
    assert model.prior_reads == () and model.learned_prior is None


def test_what_has_no_words_for_a_prior_is_refused() -> None:
    settings = SMALL_MODEL.model_copy(update={"prior": PriorNetwork()})
    with pytest.raises(SettingsError, match="nothing that decoders see"):
        build_model(settings, Elbo().demands, SMALL_DATA)
    model = make(KINDS["gaussian"])
    with pytest.raises(UsageError, match="depends on the words"):
        model.log_prior(torch.zeros(1, 3, dtype=torch.float64))
    with pytest.raises(UsageError, match="needs attributes"):
        model.prior(batch_of().select(["image"]))


@pytest.mark.slow
@pytest.mark.parametrize("prior", [{}, {"components": 3}], ids=["gaussian", "mixture"])
def test_a_file_draws_and_is_measured_by_its_prior(tmp_path: Path, prior: dict[str, int]) -> None:
    """Saved and loaded: draws from words, whole and in part, are the prior's; log p(x | y) of eval is the integral."""
    data = mmgen.make_data("shapes", tmp_path / "d.h5", number=80, seed=0)
    network = {"name": "mlp", "hidden": [8]}
    model: dict[str, Any] = {"latent_size": 1, "hidden": 8, "image_network": network, "prior": prior}
    settings = {"objective": {"hidden_share": 0.2}, "model": model}
    path = tmp_path / "m.safetensors"
    mmgen.train(data, path, objective="cvae", steps=30, batch=16, settings=settings, device="cpu")
    loaded = mmgen.load(path)
    assert isinstance(loaded.model, MultimodalVAE) and loaded.posteriors["prior"].reads == ("attributes",)
    with Dataset.open(tmp_path / "d.h5") as opened:
        rows = opened.split("iid", "test")
        codes = torch.from_numpy(opened.read_attributes("attributes", rows)).long()
        pictures = torch.from_numpy(opened.read_pixels("image", rows))
    present = {"image": torch.ones(len(rows), dtype=torch.bool), "attributes": torch.ones_like(codes, dtype=torch.bool)}
    points = Batch({"image": pictures, "attributes": codes}, present)
    whole, z = loaded.model.prior(points), grid()[0]
    for name in ("prior", "own"):
        drawn = loaded.posteriors[name].sample(points.select(["attributes"]), 4_000, torch.Generator().manual_seed(0))
        assert ((drawn.mean(0) - whole.mean).abs() < 5 * drawn.std(0) / 4_000**0.5).all()
    part = loaded.completing(False).posteriors["prior"]
    first = present["attributes"] & (torch.arange(codes.shape[1]) == 0)
    open_words = Batch(points.values, present | {"attributes": first})
    torch.testing.assert_close(
        part.log_prob(z[::1000].float(), open_words), loaded.model.prior(open_words).log_prob(z[::1000].float())
    )
    assert loaded.sample("colour=red", n=2).shape[0] == 2
    scores = mmgen.evaluate(path, ["log-likelihood"], number=len(rows), samples=1_000, posterior="prior", seed=0)
    found = next(one for one in scores if one.protocol == "importance")
    assert found.quantity == "log p(x|y)"
    double = Batch({**points.values, "image": pictures.double()}, points.present)
    exact = exact_log_likelihood(loaded.model.double(), double, 1_001)
    assert found.value == pytest.approx(float(exact.mean()), abs=0.3)
