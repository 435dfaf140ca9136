"""Posteriors of every model, to draw from and to take means of; those of layers against a linear ladder."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import mmgen.models
from mmgen.core.errors import UsageError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.models import GaussianModel
from mmgen.posteriors import LayeredPosterior, encode_in_slices, encode_points, posterior_of
from mmgen.testing.linear_gaussian import WEIGHTS
from mmgen.testing.models import small_model
from tests.models.linear_ladder import UP, ladder_observations, linear_ladder

GIVEN = ("image",)
EVERY_MODEL = pytest.mark.parametrize("name", mmgen.models.names())
MANY = 1_100
"""Examples that are encoded in three parts."""


@EVERY_MODEL
def test_layers_are_not_drawn_without_a_generator(name: str) -> None:
    model, case = small_model(name)
    batch = case.batch()
    if isinstance(model, GaussianModel):
        assert isinstance(encode_points(model, batch, case.inputs, "32-true"), DiagonalGaussian)
        return
    untyped: Any = encode_points  # which types refuse as well, where they are looked at
    with pytest.raises(ValueError, match=r"expected a torch\.Generator"):
        untyped(model, batch, case.inputs, "32-true")
    with pytest.raises(ValueError, match=r"expected a torch\.Generator"):
        list(encode_in_slices(model, batch, case.inputs, "32-true"))


@pytest.mark.slow_cases("draw")
@EVERY_MODEL
@torch.no_grad()
def test_draws_cost_what_the_trace_says(name: str) -> None:
    """E_q[log q - log p] of draws is the divergence of the trip x -> z -> x, whatever the kind of posterior."""
    model, case = small_model(name)
    model, batch = model.eval(), case.batch()
    q = posterior_of(model, batch, case.inputs, "32-true")
    z = q.sample(torch.Generator().manual_seed(0), (4_000,))
    found = q.log_prob(z) - model.log_prior(z)
    torch.manual_seed(1)
    expected = -torch.stack(list(model.trace(batch, case.inputs, samples=4_000, names=()).log_ratio.values())).sum(0)
    error = (found.var(0) + expected.var(0)).sqrt() / math.sqrt(4_000)
    assert ((found.mean(0) - expected.mean(0)).abs() < 5 * error + 1e-6).all()


@EVERY_MODEL
def test_encoders_in_half_precision_are_read_in_full(name: str) -> None:
    model, case = small_model(name)
    model, batch = model.eval(), case.batch()
    exact, rough = (posterior_of(model, batch, case.inputs, precision) for precision in ("32-true", "bf16-mixed"))
    torch.testing.assert_close(rough.mean, exact.mean, rtol=0.05, atol=0.05)
    z = rough.sample(torch.Generator().manual_seed(0), (3,))
    assert z.dtype == torch.float32
    assert rough.log_prob(z).dtype == torch.float32 and rough.log_prob(z).isfinite().all()


def ladder_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Means [N, 5] and covariance of [z1, z2] given x: z1 = P x + 0.5 e, z2 = Q z1 + 0.9 e."""
    p, q = 0.8 * torch.linalg.pinv(WEIGHTS["image"]), 0.5 * torch.linalg.pinv(UP)
    lower = 0.5**2 * torch.eye(2, dtype=torch.float64)
    upper = q @ lower @ q.T + 0.9**2 * torch.eye(3, dtype=torch.float64)
    covariance = torch.cat([torch.cat([lower, lower @ q.T], 1), torch.cat([q @ lower, upper], 1)])
    return torch.cat([x @ p.T, x @ p.T @ q.T], 1), covariance


def test_draws_of_a_ladder_have_the_moments_of_its_posterior() -> None:
    """Each draw has its own of every layer: a Gaussian around one draw of z1 has a thousandth of its spread."""
    model, points = linear_ladder(), ladder_observations(4)
    q = posterior_of(model, points, GIVEN, "32-true")
    z = q.sample(torch.Generator().manual_seed(0), (40_000,))
    mean, covariance = ladder_moments(points.values["image"])
    sd = covariance.diagonal().sqrt()
    assert ((z.mean(0) - mean).abs() < 5 * sd / 200).all()
    for row in range(points.size):
        torch.testing.assert_close(z[:, row].T.cov(), covariance, rtol=0, atol=5 * float(sd.max() ** 2) / 200)
    exact = torch.distributions.MultivariateNormal(mean, covariance)
    torch.testing.assert_close(q.log_prob(z[:50]), exact.log_prob(z[:50]))


def test_parts_are_those_of_the_whole() -> None:
    model, points = linear_ladder(), ladder_observations(MANY)
    q = posterior_of(model, points, GIVEN, "32-true")
    z = q.sample(torch.Generator().manual_seed(0), (2, 3))
    assert z.shape == (2, 3, MANY, 5)
    torch.testing.assert_close(q.log_prob(z), model.posterior(points, GIVEN).log_prob(z).detach())
    torch.testing.assert_close(q[slice(600, 610)].log_prob(z[..., 600:610, :]), q.log_prob(z)[..., 600:610])


def test_means_are_those_of_their_seed() -> None:
    """Those of the first layer are exact, so that neither the seed nor the other examples count."""
    model, points = linear_ladder(), ladder_observations(MANY)
    means = []
    for noise, seed in enumerate((3, 3, 4)):
        torch.manual_seed(noise)
        q = posterior_of(model, points, GIVEN, "32-true", seed)
        assert isinstance(q, LayeredPosterior)
        means.append(q.mean)
    torch.testing.assert_close(means[0], means[1], rtol=0, atol=0)
    assert (means[0][:, 2:] != means[2][:, 2:]).all()
    exact = ladder_moments(points.values["image"])[0]
    for mean in means:
        torch.testing.assert_close(mean[:, :2], exact[:, :2])
    torch.testing.assert_close(q[slice(600, 610)].mean[:, :2], exact[600:610, :2])
    error = 0.5 * torch.linalg.matrix_norm(0.5 * torch.linalg.pinv(UP)) / math.sqrt(MANY)
    assert ((means[0] - exact)[:, 2:].mean(0).abs() < 5 * error).all()


def test_layers_have_no_standard_deviation() -> None:
    q = posterior_of(linear_ladder(), ladder_observations(2), GIVEN)
    with pytest.raises(UsageError, match=r"q\(z \| image\) of this model has no standard deviation"):
        _ = q.sd


def test_what_is_kept_for_aggregates_is_drawn_with_its_generator() -> None:
    model, points = linear_ladder(), ladder_observations(7)
    q = posterior_of(model, points, GIVEN, "32-true")
    assert isinstance(q, LayeredPosterior)
    kept = q.draw_lower_layers(torch.Generator().manual_seed(1))
    again = encode_points(model, points, GIVEN, "32-true", torch.Generator().manual_seed(1))
    assert kept.mean.equal(again.mean) and kept.log_sd.equal(again.log_sd)
