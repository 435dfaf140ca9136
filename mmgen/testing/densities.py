"""Checks of families of densities and of likelihoods."""

import math

import torch

import mmgen.densities
import mmgen.likelihoods
from mmgen.core.batch import Batch
from mmgen.densities import SteeredDensity
from mmgen.latent.space import LatentSpace
from mmgen.modalities.attributes import Attributes
from mmgen.posteriors import Aggregate, FlowGuidance


def check_likelihood(name: str) -> None:
    """Check a likelihood: one value per image, broadcasting, fp32 densities, and draws whose mean is ``mean``."""
    likelihood = mmgen.likelihoods.get(name)()
    torch.manual_seed(0)
    parameters = torch.randn(7, 4, likelihood.parameters_per_value, 3, 3, dtype=torch.float64)
    value = likelihood.sample(parameters[0], torch.Generator().manual_seed(0))
    broadcast = likelihood.log_prob(parameters, value)
    assert broadcast.shape == (7, 4), (
        f"log_prob of parameters [7, 4, ...] and values [4, ...] is {tuple(broadcast.shape)}, expected (7, 4)"
    )
    torch.testing.assert_close(broadcast[3], likelihood.log_prob(parameters[3], value))
    with_gradient = likelihood.log_prob(parameters.clone().requires_grad_(), value)
    torch.testing.assert_close(broadcast, with_gradient.detach())
    single, many = parameters.float().repeat(1, 1, 1, 8, 8), value.float().repeat(1, 1, 8, 8)
    exact = likelihood.log_prob(single, many)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(likelihood.log_prob(single, many), exact)
        torch.testing.assert_close(likelihood.log_prob(single.clone().requires_grad_(), many).detach(), exact)
    draws = likelihood.sample(parameters[:1, :1].expand(20_000, 1, -1, -1, -1), torch.Generator().manual_seed(1))
    error = (draws.mean(0) - likelihood.mean(parameters[0, :1])).abs().max()
    assert error < 5 * draws.std(0).max() / math.sqrt(20_000), f"the mean of draws differs from mean by {error:.3g}"


ATTRIBUTES = Attributes("attributes", ("colour", "size"), (("red", "blue"), ("big", "small", "tiny")))
CONDITION = Batch(
    {"attributes": torch.tensor([[0, 1], [1, 2], [0, 0]])},
    {"attributes": torch.tensor([[True, True], [False, True], [False, False]])},
)
"""Three descriptions: one whole, one with an attribute unknown, one of nothing."""


def check_family(name: str) -> None:
    """Check a family of densities: they integrate to one, match their draws, are repeatable, differentiable and
    precise.
    """
    check_integral(name, ATTRIBUTES)
    check_integral(name, None)
    check_samples(name)
    check_draws(name)
    check_draws(name, LatentSpace.grid(1, 2, 2))
    for latent in (LatentSpace.flat(2), LatentSpace.grid(1, 2, 2)):
        check_steering(name, latent)
    check_precision(name)


def make_random_density(name: str, latent: LatentSpace, attributes: Attributes | None) -> Aggregate:
    """Return a density with random weights, far from its initial state, in float64."""
    torch.manual_seed(3)
    aggregate = Aggregate(latent, attributes, mmgen.densities.get(name).example()).double()
    with torch.no_grad():
        for parameter in aggregate.parameters():
            parameter.add_(0.03 * torch.randn_like(parameter))
        aggregate.shift.copy_(torch.linspace(-0.5, 0.5, latent.size))
        aggregate.scale.copy_(torch.linspace(0.7, 1.4, latent.size))
    return aggregate


_WEIGHTED = 2_000
"""Draws with gradients of each description."""
_PARTS = 20_000
"""Points of a grid that are computed together."""


def _make_grid(side: int = 131) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points of a grid in two dimensions [n, 1, 2], and the areas of its cells [n, 1].

    Even near the middle, and ever wider: it ends beyond a thousand, for densities with heavy tails.
    """
    even = torch.linspace(-1, 1, side, dtype=torch.float64) * 8.0
    axis, width = even.sinh(), even.cosh() * (even[1] - even[0])
    return torch.cartesian_prod(axis, axis).unsqueeze(1), torch.cartesian_prod(width, width).prod(1, keepdim=True)


@torch.no_grad()
def check_integral(name: str, attributes: Attributes | None) -> None:
    """Check that the density integrates to one over two dimensions, for each description and for none."""
    aggregate = make_random_density(name, LatentSpace.flat(2), attributes)
    for row in range(3 if attributes else 1):
        condition = CONDITION[row : row + 1] if attributes else None
        for side in (131, 521):  # densities with edges need the finer one
            parts = zip(*(each.split(_PARTS) for each in _make_grid(side)), strict=True)
            total = sum((aggregate.log_prob(some, condition).exp() * areas).sum().item() for some, areas in parts)
            if math.isclose(total, 1.0, abs_tol=2e-3):
                break
        assert math.isclose(total, 1.0, abs_tol=2e-3), f"{name} integrates to {total}"


@torch.no_grad()
def check_samples(name: str) -> None:
    """Check that draws, and weighted ones with gradients, have the mean and mean deviation of the density, for each
    description of a batch.
    """
    aggregate = make_random_density(name, LatentSpace.flat(2), ATTRIBUTES)
    grid, areas = _make_grid()
    drawn = aggregate.sample(CONDITION, 6_000, torch.Generator().manual_seed(0))
    assert drawn.shape == (6_000, 3, 2), f"draws are {tuple(drawn.shape)}, expected (6000, 3, 2)"
    many = CONDITION[torch.arange(3).repeat_interleave(_WEIGHTED)]
    weighted, shares = (each.unflatten(1, (3, _WEIGHTED)) for each in aggregate.sample_reparameterised(many, many.size))
    for row in range(3):
        weight = (
            torch.cat([aggregate.log_prob(some, CONDITION[row : row + 1]).exp() for some in grid.split(_PARTS)]) * areas
        )
        weight = weight / weight.sum()
        mean = (weight * grid.squeeze(1)).sum(0)
        sd = ((weight * (grid.squeeze(1) - mean).square()).sum(0)).sqrt()
        torch.testing.assert_close(drawn[:, row].mean(0), mean, atol=5 * sd.max().item() / math.sqrt(6_000), rtol=0)
        away = (weight * (grid.squeeze(1) - mean).abs()).sum(0)  # not squares, which heavy tails decide
        torch.testing.assert_close((drawn[:, row] - mean).abs().mean(0), away, atol=0.06, rtol=0)
        share = shares[:, row].flatten().unsqueeze(-1) / _WEIGHTED
        points = weighted[:, row].flatten(0, 1)
        centre = (share * points).sum(0)
        atol = 5 * sd.max().item() * share.square().sum().sqrt().item()
        torch.testing.assert_close(centre, mean, atol=atol, rtol=0, msg="weighted draws have another mean")
        spread = (share * (points - mean).abs()).sum(0)
        torch.testing.assert_close(spread, away, atol=0.1, rtol=0, msg="weighted draws have another spread")


def check_draws(name: str, latent: LatentSpace | None = None) -> None:
    """Check that equal generators give equal draws, that these are their noise carried, and that reparameterised draws
    have gradients and weights.

    Args:
        name: The family.
        latent: A space of four dimensions; by default a vector.
    """
    aggregate = make_random_density(name, latent or LatentSpace.flat(4), ATTRIBUTES)
    z = aggregate.sample(CONDITION, 5, torch.Generator().manual_seed(1))
    again = aggregate.sample(CONDITION, 5, torch.Generator().manual_seed(1))
    torch.testing.assert_close(z, again, rtol=0, atol=0)
    if (size := aggregate.density.noise_size) is not None:
        noise = torch.randn(5, 3, size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        carried = aggregate.density.carry_noise(noise, aggregate.context(CONDITION))
        torch.testing.assert_close(aggregate.shift + aggregate.scale * carried, z)
    log_prob = aggregate.log_prob(z, CONDITION)
    assert log_prob.shape == (5, 3), f"log_prob is {tuple(log_prob.shape)}, expected (5, 3)"
    draws, weights = aggregate.sample_reparameterised(CONDITION, 3)
    assert draws.shape[1:] == (3, 4)
    torch.testing.assert_close(weights.sum(0), torch.ones(3, dtype=torch.float64))
    (weights.unsqueeze(-1) * draws).sum().backward()
    moved = any(p.grad is not None and p.grad.abs().sum() > 0 for p in aggregate.parameters())
    assert moved, "draws have no gradient for its parameters"


@torch.no_grad()
def check_steering(name: str, latent: LatentSpace) -> None:
    """Check guidance on the path of draws, of families that have it: every description of a batch by its own reader,
    draws that follow it, and no change without one.
    """
    aggregate = make_random_density(name, latent, ATTRIBUTES)
    if not isinstance(aggregate.density, SteeredDensity):
        return
    neutral = FlowGuidance([(1.0, CONDITION)])
    drawn = aggregate.sample(CONDITION, 200, torch.Generator().manual_seed(0))
    torch.testing.assert_close(aggregate.steered_sample(neutral, 200, 3, torch.Generator().manual_seed(0)), drawn)
    some = drawn[:4]
    torch.testing.assert_close(aggregate.steered_log_prob(some, neutral)[0], aggregate.log_prob(some, CONDITION))
    slopes = torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64)

    def guide(rows: slice) -> FlowGuidance:
        own = slopes[rows]
        return FlowGuidance([(1.0, CONDITION[rows])], lambda z, which: own[which] * z.mean(-1))

    tilted = aggregate.steered_sample(guide(slice(None)), 200, 3, torch.Generator().manual_seed(0))
    moved = (tilted - drawn).mean((0, 2))
    torch.testing.assert_close(tilted[:, 0], drawn[:, 0])
    assert moved[1] > 0.02 and moved[2] < -0.02, f"{name} moved by {moved.tolist()} under readers of slopes 0, 1, -1"
    value, _ = aggregate.steered_log_prob(some, guide(slice(None)))
    alone = [aggregate.steered_log_prob(some[:, k : k + 1], guide(slice(k, k + 1)))[0] for k in range(3)]
    torch.testing.assert_close(torch.cat(alone, 1), value)


def check_precision(name: str) -> None:
    """Check that densities stay in full precision under autocast."""
    torch.manual_seed(0)
    aggregate = Aggregate(LatentSpace.flat(4), ATTRIBUTES, mmgen.densities.get(name).example())
    z = torch.randn(3, 4)
    plain = aggregate.log_prob(z, CONDITION)
    with torch.autocast("cpu", torch.bfloat16):
        inside = aggregate.log_prob(z, CONDITION)
    assert inside.dtype == torch.float32
    torch.testing.assert_close(inside, plain)
