"""Flows steered by a reader's gradient, against Gaussians in closed form and integrals on a grid."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from mmgen.densities import SteeredDensity, Steering
from tests.densities.exact_flows import ExactVelocity, double, exact_flow

PLAIN = ((1.0, None),)
GRID = torch.linspace(-4.5, 4.5, 61, dtype=torch.float64)
AREA = float(GRID[1] - GRID[0])


def on_grid(density: SteeredDensity, steering: Steering) -> Tensor:
    """Density [G] at the points of the grid, which adds up to about one."""
    with torch.no_grad():
        value, error = density.steered_log_prob(GRID[:, None, None], steering)
    assert error is None
    return value[:, 0].exp()


def distance(p: Tensor, q: Tensor) -> float:
    """Total variation."""
    return 0.5 * AREA * float((p - q).abs().sum())


@pytest.mark.parametrize("weight", [0.02, -0.02])
def test_a_small_weight_tilts_a_gaussian_as_bayes_does(weight: float) -> None:
    """q = N(0.3, 0.8^2) and log p(y | u) = log N(1; 1.5 u, 0.7^2), to first order in the weight."""
    density = exact_flow(1, double([[0.3]]), double([0.8]), double([1.0]), density_steps=24)

    def log_p(u: Tensor) -> Tensor:
        return -0.5 * ((1.0 - 1.5 * u) / 0.7).square().sum(-1)

    u = double([[0.3 + 0.8 * place] for place in (-1.5, -0.5, 0.0, 1.0, 2.0)]).unsqueeze(1)
    with torch.no_grad():
        plain, _ = density.steered_log_prob(u, Steering(PLAIN))
        tilted, _ = density.steered_log_prob(u, Steering(PLAIN, lambda z, rows: weight * log_p(z)))
    mean = -0.5 * ((1.0 - 1.5 * 0.3) ** 2 + 1.5**2 * 0.8**2) / 0.7**2  # E_q log p
    torch.testing.assert_close((tilted - plain) / weight, log_p(u) - mean, rtol=0.06, atol=0.2)


@pytest.mark.slow
def test_a_logistic_reader_of_a_mixture_is_near_the_tilted_density_and_a_density_itself() -> None:
    """Two clusters and p(y | u) = 1 / (1 + exp(-3 u)): the right one gets most of the mass."""
    density = exact_flow(1, double([[-1.2], [1.0]]), double([0.5, 0.4]), double([0.6, 0.4]), density_steps=12, steps=32)
    plain = on_grid(density, Steering(PLAIN))
    for weight in (0.5, 1.0):
        steering = Steering(PLAIN, lambda u, rows, weight=weight: weight * logsigmoid(3 * u[..., 0]))
        found = on_grid(density, steering)
        target = plain * torch.sigmoid(3 * GRID) ** weight
        target = target / (AREA * target.sum())
        assert AREA * float(found.sum()) == pytest.approx(1.0, abs=5e-3)
        assert distance(found, target) < 0.25 * distance(plain, target)
    drawn = density.steered_sample(steering, 20_000, 1, torch.Generator().manual_seed(0))[:, 0, 0]
    assert float(drawn.mean()) == pytest.approx(AREA * float((GRID * found).sum()), abs=0.02)
    assert float((drawn > 0).double().mean()) == pytest.approx(AREA * float(found[GRID > 0].sum()), abs=0.015)


@pytest.mark.slow
def test_the_trace_of_a_steered_flow_has_the_readers_second_derivatives() -> None:
    """In two dimensions with a reader that binds both: the density still adds up to one."""
    means = double([[-0.8, 0.5], [0.9, -0.4]])
    density = exact_flow(2, means, double([0.5, 0.6]), double([0.5, 0.5]), density_steps=24)
    axis = torch.linspace(-4, 4, 45, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis).unsqueeze(1)
    steering = Steering(PLAIN, lambda u, rows: logsigmoid(2 * u[..., 0] * u[..., 1]))
    with torch.no_grad():
        value, _ = density.steered_log_prob(grid, steering)
    assert float(value.exp().sum()) * float(axis[1] - axis[0]) ** 2 == pytest.approx(1.0, abs=5e-3)


@torch.no_grad()
def test_outside_its_interval_a_reader_does_nothing() -> None:
    density = exact_flow(2, double([[0.0, 0.0]]), double([0.6]), double([1.0]))
    reader = Steering(PLAIN, lambda u, rows: 5 * u.sum(-1), start=0.99)
    generator = torch.Generator()
    plain = density.sample(None, 20, 1, generator.manual_seed(1))
    torch.testing.assert_close(density.steered_sample(reader, 20, 1, generator.manual_seed(1)), plain, rtol=0, atol=0)
    inside = Steering(PLAIN, lambda u, rows: 5 * u.sum(-1), start=0.3, end=0.8)
    assert float((density.steered_sample(inside, 20, 1, generator.manual_seed(1)) - plain).mean()) > 0.3


@torch.no_grad()
@pytest.mark.parametrize(("start", "end"), [(0.0, 1.0), (0.25, 0.75), (0.013, 0.4), (0.3, 1.0), (0.81, 0.82)])
def test_guidance_on_a_part_of_the_path_has_the_density_in_closed_form(start: float, end: float) -> None:
    r"""With Gaussian velocities, v = m + (u - t m) sd'_t / sd_t, guidance moves m alone, and the path is

    u_1 / sd_1 = u_0 + \\sum_i m_i (t_i / sd(t_i) - t_{i-1} / sd(t_{i-1})) over the parts of means m_i.
    """
    mean, sd, asked, scale = double([[0.3, -0.2, 0.1]]), 0.5, 0.8, 1.5
    density = exact_flow(3, mean, double([sd]), double([1.0]))
    steering = Steering([(1 + scale, double([[asked]])), (-scale, None)], start=start, end=end)
    u = torch.randn(20, 1, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) * sd + 1

    def scaled(t: float) -> float:
        return t / ((1 - t) ** 2 + (t * sd) ** 2) ** 0.5

    outside, inside = mean + asked, mean + (1 + scale) * asked
    centre = sd * (outside * (scaled(1) - scaled(end) + scaled(start)) + inside * (scaled(end) - scaled(start)))
    exact = torch.distributions.Normal(centre, sd).log_prob(u).sum(-1)
    found, _ = density.steered_log_prob(u, steering)
    assert float((found - exact).abs().max()) < 1e-5


@torch.no_grad()
@pytest.mark.slow_cases("0.0-1.0", "0.4-0.9")
@pytest.mark.parametrize(("start", "end"), [(0.0, 1.0), (0.03, 0.7), (0.4, 0.9)])
def test_a_reader_on_a_part_of_the_path_has_the_density_of_a_fine_integration(start: float, end: float) -> None:
    coarse, fine = (exact_flow(1, double([[0.3]]), double([0.8]), double([1.0]), density_steps=n) for n in (32, 96))
    steering = Steering(PLAIN, lambda u, rows: logsigmoid(3 * u[..., 0]), start=start, end=end)
    u = double([[-0.5], [0.2], [1.0]]).unsqueeze(1)
    (found, _), (exact, _) = (density.steered_log_prob(u, steering) for density in (coarse, fine))
    assert float((found - exact).abs().max()) < 1e-5


@torch.no_grad()
def test_negative_guidance_moves_mass_away_from_the_excluded_mode() -> None:
    """Velocities v of a mixture, and of its modes alone: v + s (v_right - v) loses the mass of the left mode."""
    density = exact_flow(1, double([[0.0]]), double([0.5]), double([1.0]), steps=16)
    network = density.network
    network.means, network.sds, network.weights = double([[-1.5], [1.5]]), double([0.5, 0.5]), double([0.5, 0.5])

    class OfMode(ExactVelocity):
        """The mixture for context 0, its left mode alone for context 1."""

        def forward(self, u: Tensor, t: Tensor, condition: Tensor) -> Tensor:
            both = super().forward(u, t, torch.zeros_like(condition))
            self.means, self.sds, self.weights = (part[:1] for part in (self.means, self.sds, self.weights))
            left = super().forward(u, t, torch.zeros_like(condition))
            self.means, self.sds, self.weights = network.means, network.sds, network.weights
            return torch.where(condition > 0, left, both)

    density.network = OfMode(network.means, network.sds, network.weights)  # type: ignore[assignment]  # in closed form
    none, left = double([[0.0]]), double([[1.0]])
    shares = []
    for scale in (0.0, 0.1, 0.3, 1.0):
        steering = Steering([(1 + scale, none), (-scale, left)])
        drawn = density.steered_sample(steering, 4_000, 1, torch.Generator().manual_seed(0))
        shares.append(float((drawn < 0).double().mean()))
    assert shares[0] == pytest.approx(0.5, abs=0.03)
    assert shares == sorted(shares, reverse=True) and shares[-1] < 0.2
