"""Rectified flows against closed forms: Gaussians and mixtures, whose velocities are known exactly."""

import math

import pytest
import torch
from torch import Tensor, nn

import mmgen.densities
from mmgen.densities import Steering
from mmgen.latent.space import LatentSpace
from tests.densities.exact_flows import MIXTURE, double, exact_flow, log_mixture


@torch.no_grad()
def test_the_density_of_a_gaussian_is_its_closed_form() -> None:
    mean = double([[0.3, -0.2, 0.8]])
    density = exact_flow(3, mean, double([0.5]), double([1.0]), density_steps=24)
    u = mean + 0.5 * torch.randn(4, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = torch.distributions.Normal(mean[0], 0.5).log_prob(u).sum(-1)
    value, error = density.log_prob_with_error(u, None)
    torch.testing.assert_close(value, expected, atol=1e-4, rtol=0)
    assert error is None


@pytest.mark.slow
@torch.no_grad()
def test_the_density_of_a_mixture_is_its_closed_form_and_integrates_to_one() -> None:
    density = exact_flow(2, **MIXTURE, density_steps=32)
    axis = torch.linspace(-4, 4, 61, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis).unsqueeze(1)
    value = density.log_prob(grid, None)
    area = float(axis[1] - axis[0]) ** 2
    assert float(value.exp().sum()) * area == pytest.approx(1.0, abs=2e-3)
    exact = log_mixture(grid)
    near = exact > -8
    assert float((value - exact)[near].abs().max()) < 0.01


@torch.no_grad()
def test_halving_the_steps_moves_the_density_by_less_than_a_hundredth_of_a_nat() -> None:
    u = double([[-1.0, 0.5], [1.0, 0.0], [0.3, 1.6], [0.0, 0.0]]).unsqueeze(1)
    values = [exact_flow(2, **MIXTURE, density_steps=steps).log_prob(u, None) for steps in (16, 32)]
    assert float((values[0] - values[1]).abs().max()) < 0.01


@torch.no_grad()
def test_backwards_and_forwards_again_ends_where_it_began() -> None:
    """Points of noise, carried to latents by many midpoint steps, have the density of their noise times the volume."""
    density = exact_flow(2, **MIXTURE, steps=128, density_steps=64)
    velocity = density._velocity(Steering(((1.0, None),)))
    noise = torch.randn(50, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    u = density.carry(velocity, noise)
    back, _ = density._carry_back([(1.0, 0.0, velocity)], u)
    torch.testing.assert_close(back, noise, atol=2e-3, rtol=0)


@torch.no_grad()
def test_one_point_has_a_density_under_each_of_several_contexts() -> None:
    density = exact_flow(2, **MIXTURE, density_steps=8)
    contexts, u = double([[0.0], [0.4], [-0.3]]), double([[[0.2, 0.1]], [[1.0, -1.0]]])
    together = density.log_prob(u, contexts)
    apart = torch.cat([density.log_prob(u, context[None]) for context in contexts], 1)
    torch.testing.assert_close(together, apart)


@torch.no_grad()
def test_draws_follow_the_mixture() -> None:
    density = exact_flow(2, **MIXTURE, steps=32)
    drawn = density.sample(None, 10_000, 1, torch.Generator().manual_seed(0))[:, 0]
    means, sds, weights = MIXTURE.values()
    mean = weights @ means
    variance = weights @ (sds[:, None] ** 2 + means**2) - mean**2
    torch.testing.assert_close(drawn.mean(0), mean, atol=0.04, rtol=0)
    torch.testing.assert_close(drawn.var(0), variance, atol=0.06, rtol=0)
    # The entropy, by the density that the draws should have: E log q = -H.
    grid = torch.linspace(-4, 4, 401, dtype=torch.float64)
    points = torch.cartesian_prod(grid, grid)
    exact = log_mixture(points)
    expected = float((exact.exp() * exact).sum()) * float(grid[1] - grid[0]) ** 2
    assert float(log_mixture(drawn).mean()) == pytest.approx(expected, abs=0.05)


@torch.no_grad()
def test_random_probes_agree_with_the_exact_trace_within_their_error() -> None:
    size = 6
    generator = torch.Generator().manual_seed(2)
    means = torch.randn(3, size, dtype=torch.float64, generator=generator)
    mixture = (means, double([0.5, 0.7, 0.6]), double([0.2, 0.5, 0.3]))
    u = means[[0, 1, 2, 0, 1]].unsqueeze(1) + 0.3
    exact, none = exact_flow(size, *mixture).log_prob_with_error(u, None)
    estimate, error = exact_flow(size, *mixture, probes=64).log_prob_with_error(u, None)
    assert none is None and error is not None
    assert bool((error > 0).all()) and float(error.max()) < 1.0
    assert float(((estimate - exact) / error).abs().max()) < 4
    assert float((estimate - exact).abs().max()) > 0  # it is an estimate
    again, _ = exact_flow(size, *mixture, probes=64).log_prob_with_error(u, None)
    torch.testing.assert_close(again, estimate, rtol=0, atol=0)


@torch.no_grad()
def test_guidance_of_gaussians_is_the_gaussian_beyond_the_conditional_one() -> None:
    """With q(u) = N(0, s^2) and q(u|y) = N(m, s^2), weight w ends at N((1 + w) m, s^2)."""
    density = exact_flow(2, double([[0.0, 0.0]]), double([0.6]), double([1.0]), steps=32, density_steps=24)
    context, none = double([[0.5], [-0.2]]), double([[0.0], [0.0]])
    terms = ((1.5, context), (-0.5, none))
    drawn = density.steered_sample(Steering(terms), 10_000, 2, torch.Generator().manual_seed(0))
    torch.testing.assert_close(drawn.mean(0), 1.5 * context.expand(2, 2), atol=0.03, rtol=0)
    torch.testing.assert_close(drawn.std(0), torch.full((2, 2), 0.6, dtype=torch.float64), atol=0.03, rtol=0)
    u = double([[0.3, 0.1], [0.0, -0.4]])
    expected = torch.distributions.Normal(1.5 * context, 0.6).log_prob(u).sum(-1)
    value, _ = density.steered_log_prob(u, Steering(terms))
    torch.testing.assert_close(value, expected, atol=1e-3, rtol=0)


@torch.no_grad()
def test_guidance_outside_its_interval_is_none() -> None:
    density = exact_flow(2, **MIXTURE)
    context = double([[0.5]])
    terms = ((3.0, context), (-2.0, double([[0.0]])))
    generator = torch.Generator()
    plain = density.sample(context, 50, 1, generator.manual_seed(1))
    beside = density.steered_sample(Steering(terms, start=0.99), 50, 1, generator.manual_seed(1))
    inside = density.steered_sample(Steering(terms, start=0.2, end=0.8), 50, 1, generator.manual_seed(1))
    torch.testing.assert_close(beside, plain, rtol=0, atol=0)
    assert float((inside - plain).abs().max()) > 0.1


def batches(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """One-hot labels [B, 2] and draws [B, 2]: label 0 has a cluster left and one right, label 1 one up and one down."""
    label = torch.randint(0, 2, (size,), generator=generator)
    side = 2.0 * torch.randint(0, 2, (size,), generator=generator) - 1
    mean = torch.stack([side * (1 - label), side * label], -1)
    return nn.functional.one_hot(label, 2).float(), mean + 0.25 * torch.randn(size, 2, generator=generator)


def fitted(name: str, steps: int, **settings: object) -> mmgen.densities.Density:
    torch.manual_seed(0)
    density = mmgen.densities.get(name)(**settings).build_density(LatentSpace.flat(2), 2)
    optimizer = torch.optim.Adam(density.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        context, u = batches(256, generator)
        optimizer.zero_grad()
        (-density.training_value(u, context).mean()).backward()
        optimizer.step()
        schedule.step()
    return density.eval()


@pytest.mark.slow
def test_a_trained_flow_has_the_density_of_its_data_as_realnvp_has() -> None:
    context, u = batches(2_000, torch.Generator().manual_seed(9))
    exact = float(torch.distributions.Normal(0.0, 0.25).entropy()) * 2 + math.log(2)  # clusters barely overlap
    flow, couplings = fitted("rectified-flow", 600, width=48, blocks=2), fitted("realnvp", 300)
    with torch.no_grad():
        entropies = [-float(density.log_prob(u, context).mean()) for density in (flow, couplings)]
    assert entropies[0] == pytest.approx(exact, abs=0.12)
    assert entropies[0] == pytest.approx(entropies[1], abs=0.2)


@pytest.mark.slow
def test_a_hidden_description_gives_the_velocity_of_all_data() -> None:
    density = fitted("rectified-flow", 600, width=48, blocks=2)
    with torch.no_grad():
        drawn = density.sample(torch.zeros(1, 2), 4_000, 1, torch.Generator().manual_seed(0))[:, 0]
    horizontal = (drawn[:, 0].abs() > drawn[:, 1].abs()).float().mean()
    assert float(horizontal) == pytest.approx(0.5, abs=0.06)


def test_validation_does_not_depend_on_what_was_drawn_before() -> None:
    """The loop seeds before each batch of validation: equal seeds give equal values, and times cover the whole path."""
    density = mmgen.densities.get("rectified-flow").example().build_density(LatentSpace.flat(2), 2).eval()
    context, u = batches(64, torch.Generator().manual_seed(0))
    values = []
    for _ in range(2):
        torch.manual_seed(5)
        values.append(density.training_value(u, context))
        torch.rand(100)
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=0)
    assert values[0].shape == (64,)
