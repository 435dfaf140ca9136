"""Likelihoods of grey values against scipy and against arithmetic of many digits."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import integrate, stats

import mmgen.likelihoods
import mmgen.objectives
from mmgen.core.batch import Batch
from mmgen.likelihoods.laplace import Laplace
from mmgen.likelihoods.quantised_normal import QuantisedNormal
from mmgen.modalities.image import ImageDescription
from mmgen.models._build import build_model
from mmgen.models._settings import DataSettings, MultimodalSettings

LEVELS = torch.arange(256).reshape(256, 1, 1, 1) / 255


def parameters(mean: float, sd: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Decoder outputs [1, 2, 1, 1] of a pixel of this mean and standard deviation, in units of the pixel's range."""
    v = math.log(math.expm1(4 * (sd - 0.5 / 255))) if sd > 0.5 / 255 else -60.0
    return torch.tensor([mean - 0.5, v], dtype=torch.float64).to(dtype).reshape(1, 2, 1, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fp32", "fp64"])
@pytest.mark.parametrize("sd", [0.5 / 255, 1.2 / 255, 0.03, 0.4, 5.0])
@pytest.mark.parametrize("mean", [-3.0, -0.01, 0.0, 0.3333, 1.0, 1.7])
def test_the_256_levels_have_probability_one(mean: float, sd: float, dtype: torch.dtype) -> None:
    log_p = QuantisedNormal().log_prob(parameters(mean, sd, dtype), LEVELS)
    assert log_p.isfinite().all() and (log_p <= 0).all()
    assert log_p.exp().sum().item() == pytest.approx(1.0, abs=3e-6 if dtype == torch.float32 else 1e-9)


def exact(level: int, mean: float, sd: float) -> tuple[float, float, float]:
    """log p(level) and its derivatives by mean and standard deviation, with 60 digits."""
    with mpmath.workdps(60):
        m, s = mpmath.mpf(mean), mpmath.mpf(sd)
        a = -mpmath.inf if level == 0 else (mpmath.mpf(2 * level - 1) / 510 - m) / s
        b = mpmath.inf if level == 255 else (mpmath.mpf(2 * level + 1) / 510 - m) / s
        if a > 0:  # the upper tail is where the distribution function is 1
            p = mpmath.ncdf(-a) - mpmath.ncdf(-b)
        else:
            p = mpmath.ncdf(b) - mpmath.ncdf(a)
        at_a, at_b = (0 if mpmath.isinf(end) else mpmath.npdf(end) for end in (a, b))
        weighted = (0 if at_a == 0 else a * at_a) - (0 if at_b == 0 else b * at_b)
        return float(mpmath.log(p)), float((at_a - at_b) / p / s), float(weighted / p / s)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fp32", "fp64"])
def test_quantised_normal_in_its_middle_and_in_both_tails(dtype: torch.dtype) -> None:
    """Up to 700 standard deviations off, log p and gradients are exact to rounding."""
    tolerance = 2e-5 if dtype == torch.float32 else 1e-8
    for sd in (0.5 / 255, 0.9 / 255, 0.01, 0.06, 3.0):
        for mean in (-0.4, 0.02, 0.5, 1.3):
            for level in (0, 1, 127, 254, 255):
                given = parameters(mean, sd, dtype).requires_grad_()
                value = QuantisedNormal().log_prob(given, LEVELS[level : level + 1].to(dtype))
                value.sum().backward()
                # What fp32 made of the settings is what counts.
                u, v = given.detach().double().flatten().tolist()
                at_sd = math.log1p(math.exp(v)) / 4 + 0.5 / 255
                log_p, by_mean, by_sd = exact(level, u + 0.5, at_sd)
                slope = 0.25 / (1 + math.exp(-v))
                assert value.item() == pytest.approx(log_p, rel=tolerance, abs=tolerance)
                assert given.grad is not None
                scale = tolerance * 5 / at_sd
                assert given.grad[0, 0].item() == pytest.approx(by_mean, rel=5 * tolerance, abs=scale)
                assert given.grad[0, 1].item() == pytest.approx(
                    by_sd * slope, rel=5 * tolerance, abs=scale * slope + 1e-30
                )


def test_quantised_normal_stays_finite_at_any_decoder_output() -> None:
    extremes = torch.tensor([-1e4, -50.0, 0.0, 50.0, 1e4])
    grid = torch.cartesian_prod(extremes, extremes).reshape(25, 2, 1, 1).requires_grad_()
    value = QuantisedNormal().log_prob(grid.unsqueeze(0).expand(256, 25, 2, 1, 1), LEVELS.unsqueeze(1))
    value.sum().backward()
    assert value.isfinite().all() and grid.grad is not None and grid.grad.isfinite().all()


def test_values_between_levels_count_as_the_nearest() -> None:
    given = parameters(0.4, 0.02)
    one, other = (QuantisedNormal().log_prob(given, torch.full((1, 1, 1, 1), x / 255)) for x in (100.3, 100.0))
    assert one.item() == other.item()


def test_quantised_normal_is_above_the_bound_by_uniform_noise() -> None:
    """VE's estimate: the density at a pixel plus noise of a level's width; its mean is below log p (Jensen)."""
    mean, sd, level = 0.5, 1.5 / 255, 130
    noise = (torch.arange(2000) + 0.5) / 2000 - 0.5
    density = stats.norm(mean, sd).logpdf((level + noise.numpy()) / 255) - math.log(255)
    log_p = QuantisedNormal().log_prob(parameters(mean, sd), LEVELS[level : level + 1]).item()
    assert density.mean() < log_p < density.mean() + 0.2


@pytest.mark.parametrize("sd", [0.5 / 255, 0.01, 0.3])
@pytest.mark.parametrize("mean", [-0.2, 0.001, 0.31, 0.9999])
def test_quantised_mean_is_that_of_the_levels(mean: float, sd: float) -> None:
    given = parameters(mean, sd)
    p = QuantisedNormal().log_prob(given, LEVELS).exp()
    expected = (p * LEVELS.flatten()).sum().item()
    assert QuantisedNormal().mean(given).item() == pytest.approx(expected, abs=1 / 255 / 20)


def test_quantised_draws_have_the_probabilities_of_the_levels() -> None:
    given = parameters(0.995, 0.02).expand(100_000, 2, 1, 1)
    drawn = (QuantisedNormal().sample(given, torch.Generator().manual_seed(0)).flatten() * 255).round().long()
    observed = torch.bincount(drawn, minlength=256) / 100_000
    expected = QuantisedNormal().log_prob(given[:1], LEVELS).exp()
    assert (observed - expected).abs().max() < 5 * (expected * (1 - expected) / 100_000).sqrt().max()


def test_colours_have_means_first_and_then_deviations() -> None:
    torch.manual_seed(0)
    given, x = torch.randn(4, 6, 5, 7, dtype=torch.float64), torch.randint(0, 256, (4, 3, 5, 7)) / 255
    single = sum(QuantisedNormal().log_prob(given[:, [c, 3 + c]], x[:, c : c + 1]) for c in range(3))
    torch.testing.assert_close(QuantisedNormal().log_prob(given, x), single)


def test_quantised_normal_is_the_same_in_parts_and_as_a_whole() -> None:
    """More images than are computed together, several latents for each."""
    given, x = torch.randn(3, 9, 6, 64, 64), torch.randint(0, 256, (9, 3, 64, 64)) / 255
    whole = QuantisedNormal().log_prob(given, x)
    single = [[QuantisedNormal().log_prob(given[k, b], x[b]) for b in range(9)] for k in range(3)]
    torch.testing.assert_close(whole, torch.tensor(single))


@pytest.mark.parametrize("scale", [0.75, 0.1])
def test_laplace_against_scipy(scale: float) -> None:
    logits, x = torch.randn(5, 3, 4, 6, dtype=torch.float64) * 4, torch.rand(5, 3, 4, 6, dtype=torch.float64)
    expected = stats.laplace(logits.sigmoid().numpy(), scale).logpdf(x.numpy()).sum((1, 2, 3))
    np.testing.assert_allclose(Laplace(scale).log_prob(logits, x), expected)


def test_laplace_integrates_to_one_over_all_reals_and_not_over_pixels() -> None:
    grid = torch.linspace(-25, 26, 400_001, dtype=torch.float64)
    density = Laplace().log_prob(torch.full((1, 1, 1, 1), 0.7, dtype=torch.float64), grid.reshape(-1, 1, 1, 1)).exp()
    assert integrate.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)
    inside = (grid >= 0) & (grid <= 1)
    mean = 1 / (1 + math.exp(-0.7))
    outside = math.exp(-mean / 0.75) / 2 + math.exp(-(1 - mean) / 0.75) / 2
    assert integrate.trapezoid(density[inside], grid[inside]) == pytest.approx(1 - outside, abs=1e-4)


@pytest.mark.parametrize(("mean", "outside", "nats"), [(0.5, 0.51, 0.72), (1e-9, 0.63, 1.00)])
def test_what_laplace_gives_to_values_that_no_pixel_has(mean: float, outside: float, nats: float) -> None:
    """The documented share outside [0, 1] and what it takes from densities of pixels, by integrating log_prob."""
    logit = torch.full((1, 1, 1, 1), math.log(mean / (1 - mean)), dtype=torch.float64)
    grid = torch.linspace(0, 1, 20_001, dtype=torch.float64)
    inside = integrate.trapezoid(Laplace().log_prob(logit, grid.reshape(-1, 1, 1, 1)).exp(), grid)
    assert 1 - inside == pytest.approx(outside, abs=0.005)
    assert -math.log(inside) == pytest.approx(nats, abs=0.005)
    written = " ".join((Laplace.__doc__ or "").split())
    assert f"{outside:.0%}".replace("%", " %") in written and f"{nats:.2f}" in written


def test_every_dense_likelihood_is_made_without_settings() -> None:
    """That is how a model makes them."""
    for name in ("laplace", "quantised-normal"):
        assert mmgen.likelihoods.get(name)().parameters_per_value in (1, 2)


@pytest.mark.parametrize("name", ["laplace", "quantised-normal"])
def test_a_model_learns_under_it(name: str) -> None:
    """Decoders have as many channels as it needs, in bf16 as in fp32; a few steps raise the bound."""
    settings = MultimodalSettings(
        latent_size=4, hidden=16, image_likelihood=name, image_network={"channels": (8, 8), "fully_connected": (16,)}
    )
    data = DataSettings.from_descriptions(ImageDescription(shape=(3, 16, 16), layout="bytes"))
    objective = mmgen.objectives.get("elbo")(modalities=("image",))
    torch.manual_seed(0)
    model = build_model(settings, objective.demands, data)
    pixels = (torch.arange(256).reshape(1, 1, 16, 16) * torch.tensor([1.0, 0.5, 0.0]).reshape(1, 3, 1, 1)).round() / 255
    batch = Batch({"image": pixels.expand(8, -1, -1, -1)}, {"image": torch.ones(8, dtype=torch.bool)})
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    values = []
    for step in range(40):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=step % 2 == 0):
            value = objective(model, batch).value.mean()
        (-value).backward()
        optimizer.step()
        values.append(value.item())
    assert all(map(math.isfinite, values)) and values[-1] > values[0] + 200
    with torch.no_grad():
        z = torch.zeros(2, 4)
        assert model.mean("image", z).shape == model.sample("image", z).shape == (2, 3, 16, 16)
