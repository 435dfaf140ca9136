"""Gaussians, likelihoods and products of experts against numerical integration and torch's own distributions."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats

import mmgen.likelihoods
from mmgen.inference._base import product_of_gaussians
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.likelihoods._base import Likelihood
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.testing.densities import check_likelihood


def gaussian(mean: float, sd: float) -> DiagonalGaussian:
    return DiagonalGaussian(torch.tensor([mean], dtype=torch.float64), torch.tensor([sd], dtype=torch.float64).log())


def test_log_prob_and_entropy_against_scipy() -> None:
    q = gaussian(0.4, 1.7)
    z = torch.linspace(-3, 3, 7).double().unsqueeze(-1)
    np.testing.assert_allclose(q.log_prob(z), stats.norm(0.4, 1.7).logpdf(z.squeeze(-1)))
    np.testing.assert_allclose(q.entropy(), stats.norm(0.4, 1.7).entropy())


def test_kl_against_numerical_integration() -> None:
    p, q = stats.norm(0.3, 0.6), stats.norm(-0.5, 1.4)
    numeric, _ = integrate.quad(lambda z: p.pdf(z) * (p.logpdf(z) - q.logpdf(z)), -8, 8)
    assert gaussian(0.3, 0.6).kl(gaussian(-0.5, 1.4)).item() == pytest.approx(numeric, abs=1e-9)


def test_samples_are_reparameterised_and_follow_their_moments() -> None:
    mean, log_sd = torch.full((1,), 2.0, requires_grad=True), torch.full((1,), 0.5, requires_grad=True)
    z = DiagonalGaussian(mean, log_sd).sample(torch.Generator().manual_seed(0), (200_000,))
    assert z.mean().item() == pytest.approx(2.0, abs=4 * np.exp(0.5) / np.sqrt(200_000))
    assert z.std().item() == pytest.approx(np.exp(0.5), rel=0.01)
    z.mean().backward()
    assert mean.grad is not None and mean.grad.item() == pytest.approx(1.0)


def test_product_of_experts_equals_the_normalised_pointwise_product() -> None:
    experts = [gaussian(1.0, 0.8), gaussian(-0.5, 1.2), gaussian(30.0, 0.1)]
    present = [torch.tensor(True), torch.tensor(True), torch.tensor(False)]
    result = product_of_gaussians(zip(experts, present, strict=True), gaussian(0.0, 1.0))
    grid = np.linspace(-10, 10, 20_001)
    density = stats.norm(0, 1).pdf(grid) * stats.norm(1.0, 0.8).pdf(grid) * stats.norm(-0.5, 1.2).pdf(grid)
    density /= integrate.trapezoid(density, grid)
    mean = integrate.trapezoid(grid * density, grid)
    assert result.mean.item() == pytest.approx(mean, abs=1e-8)
    variance = integrate.trapezoid((grid - mean) ** 2 * density, grid)
    assert result.variance.item() == pytest.approx(variance, abs=1e-8)


def test_product_of_nothing_is_the_prior() -> None:
    result = product_of_gaussians([(gaussian(1.0, 0.8), torch.tensor(False))], gaussian(0.0, 1.0))
    assert result.mean.item() == 0.0
    assert result.sd.item() == 1.0


DENSE = [name for name in mmgen.likelihoods.names() if issubclass(mmgen.likelihoods.get(name), Likelihood)]


def test_likelihoods_that_are_not_dense_are_tested_elsewhere() -> None:
    assert set(mmgen.likelihoods.names()) - set(DENSE) == {"autoregressive", "word-set"}, (
        "see test_text.py and test_word_set.py"
    )


@pytest.mark.parametrize("name", DENSE)
def test_likelihood_contract(name: str) -> None:
    check_likelihood(name)


def test_bernoulli_against_torch() -> None:
    logits = torch.randn(6, 2, 4, 4, dtype=torch.float64) * 5
    x = (torch.rand(6, 2, 4, 4) < 0.4).double()
    expected = torch.distributions.Bernoulli(logits=logits).log_prob(x).sum((1, 2, 3))
    torch.testing.assert_close(mmgen.likelihoods.get("bernoulli")().log_prob(logits, x), expected)


def test_bernoulli_sums_to_one_over_all_binary_images() -> None:
    logits = torch.tensor([[[[0.3, -2.0], [1.5, 0.0]]]], dtype=torch.float64)
    every = torch.tensor([[int(b) for b in f"{i:04b}"] for i in range(16)]).double().reshape(16, 1, 2, 2)
    total = mmgen.likelihoods.get("bernoulli")().log_prob(logits, every).exp().sum()
    assert total.item() == pytest.approx(1.0)


BETA = mmgen.likelihoods.get("beta")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["computed", "looked up"])
@pytest.mark.parametrize("concentration", [100.0, 7.5])
def test_beta_against_scipy(concentration: float, dtype: torch.dtype) -> None:
    """Densities and their derivatives over all means and pixels; black and white pixels count half a level inside."""
    generator = torch.Generator().manual_seed(0)
    logits = (6 * torch.randn(6, 3, 20, 30, generator=generator, dtype=torch.float64)).clamp(-15, 15)
    pixels = torch.randint(0, 256, logits.shape, generator=generator) / 255
    x = pixels.double().clamp(0.5 / 255, 1 - 0.5 / 255).numpy()
    one, other = (concentration * side.sigmoid().numpy() for side in (logits, -logits))
    expected = stats.beta(one, other).logpdf(x).sum((1, 2, 3))
    given = logits.to(dtype).requires_grad_()
    value = BETA(concentration).log_prob(given, pixels.to(dtype))
    with torch.no_grad():
        torch.testing.assert_close(BETA(concentration).log_prob(given, pixels.to(dtype)), value)
    np.testing.assert_allclose(value.detach(), expected, rtol=1e-12 if dtype == torch.float64 else 1e-6)
    value.sum().backward()
    # d log p / da = c [log x - log(1-x) - psi(c a) + psi(c (1-a))], and da/dl = a (1-a).
    slope = np.log(x) - np.log1p(-x) - special.digamma(one) + special.digamma(other)
    derivative = slope * one * other / concentration
    assert given.grad is not None
    tolerance = 1e-9 if dtype == torch.float64 else 2e-3
    np.testing.assert_allclose(given.grad, derivative, atol=tolerance, rtol=tolerance)


def test_beta_integrates_to_one() -> None:
    logits = torch.tensor([-1.0, 0.2, 2.0], dtype=torch.float64)
    grid = torch.linspace(0.5 / 255, 1 - 0.5 / 255, 20_001, dtype=torch.float64)
    density = BETA().log_prob(logits.reshape(3, 1, 1, 1, 1), grid.reshape(-1, 1, 1, 1)).exp()
    np.testing.assert_allclose(integrate.trapezoid(density, grid, axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("logit", [-500.0, -60.0, 60.0, 500.0])
def test_beta_stays_finite_where_the_mean_is_black_or_white(logit: float) -> None:
    logits = torch.full((1, 3, 8, 8), logit, requires_grad=True)
    value = BETA().log_prob(logits, torch.tensor([0.0, 0.5, 1.0]).reshape(1, 3, 1, 1).expand(1, 3, 8, 8))
    value.sum().backward()
    assert value.isfinite().all() and logits.grad is not None and logits.grad.isfinite().all()
    # log p falls as -|l|: the derivative of log(c a) for small a.
    assert logits.grad.mean().item() == pytest.approx(-math.copysign(1, logit), abs=1e-3)


def test_beta_is_the_same_in_parts_and_as_a_whole() -> None:
    """More images than are computed together, several latents for each."""
    logits, x = torch.randn(3, 9, 3, 64, 64), torch.rand(9, 3, 64, 64)
    whole = BETA().log_prob(logits, x)
    single = [[BETA().log_prob(logits[k, b], x[b]) for b in range(9)] for k in range(3)]
    torch.testing.assert_close(whole, torch.tensor(single))
    assert BETA().log_prob(logits.requires_grad_(), x).shape == (3, 9)


def test_image_that_is_not_present_contributes_nothing() -> None:
    image = Image("image", (1, 2, 2), mmgen.likelihoods.get("bernoulli")())
    value = image.log_prob(torch.ones(3, 1, 2, 2), torch.ones(3, 1, 2, 2), torch.tensor([True, False, True]))
    assert value[1] == 0 and (value[[0, 2]] < 0).all()


ATTRIBUTES = Attributes("attributes", ("digit", "size"), (("0", "1", "2"), ("big", "small")))


def test_attributes_against_torch_categoricals() -> None:
    logits = torch.randn(4, 5, 5, dtype=torch.float64)
    codes = torch.tensor([[0, 1], [1, 0], [2, 1], [2, 0], [0, 0]])
    everything = torch.ones(5, 2, dtype=torch.bool)
    digit = torch.distributions.Categorical(logits=logits[..., :3]).log_prob(codes[:, 0])
    size = torch.distributions.Categorical(logits=logits[..., 3:]).log_prob(codes[:, 1])
    torch.testing.assert_close(ATTRIBUTES.log_prob(logits, codes, everything), digit + size)
    only_size = torch.tensor([[False, True]]).expand(5, 2)
    torch.testing.assert_close(ATTRIBUTES.log_prob(logits, codes, only_size), size)


def test_attribute_samples_follow_their_probabilities_and_stay_in_range() -> None:
    logits = torch.tensor([0.0, 1.0, -1.0, 0.5, -0.5]).expand(50_000, 5)
    drawn = ATTRIBUTES.sample(logits, torch.Generator().manual_seed(0))
    assert drawn[:, 1].max() == 1
    mean = ATTRIBUTES.mean(logits[:1])[0]
    assert mean[1, 2] == 0
    observed = torch.bincount(drawn[:, 0], minlength=3) / 50_000
    torch.testing.assert_close(observed, mean[0], atol=0.01, rtol=0)


def test_descriptions_are_one_hot_with_a_mask() -> None:
    codes, present = torch.tensor([[2, 1], [0, 1]]), torch.tensor([[True, True], [False, True]])
    described = ATTRIBUTES.describe(codes, present)
    assert described.tolist() == [[0, 0, 1, 0, 1, 1, 1], [0, 0, 0, 0, 1, 0, 1]]
