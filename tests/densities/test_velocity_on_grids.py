"""Rectified flows on grids: a Gaussian in closed form, places that matter, and settings that do not fit."""

import math

import pytest
import torch
from torch import Tensor

import mmgen.densities
from mmgen.core.errors import SettingsError
from mmgen.densities._velocity import GridVelocityNetwork, VectorVelocityNetwork
from mmgen.densities.rectified_flow import RectifiedFlow, RectifiedFlowDensity
from mmgen.latent.space import LatentSpace

GRID = LatentSpace.grid(1, 2, 2)


def covariance() -> Tensor:
    """Covariance [4, 4] of a field on 2 x 2 places: neighbours are alike, and the right half varies less."""
    rows, columns = torch.meshgrid(torch.arange(2.0), torch.arange(2.0), indexing="ij")
    places = torch.stack([rows.flatten(), columns.flatten()], 1)
    spread = 1.0 - 0.4 * places[:, 1]
    return spread[:, None] * spread * torch.exp(-torch.cdist(places, places) / 1.5)


def mean(context: Tensor) -> Tensor:
    """Mean [B, 4]: the context moves the left half up and the right half down."""
    return context * torch.tensor([0.5, -0.5] * 2)


@pytest.fixture(scope="module")
def fitted() -> RectifiedFlowDensity:
    torch.manual_seed(0)
    family = mmgen.densities.get("rectified-flow")(width=24, blocks=2, heads=2, unconditional=0.0, density_steps=8)
    density = family.build_density(GRID, 1)
    factor, steps = torch.linalg.cholesky(covariance()), 400
    optimizer = torch.optim.Adam(density.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        context = torch.randint(0, 2, (128, 1)).float()
        u = mean(context) + torch.randn(128, 4) @ factor.T
        optimizer.zero_grad()
        (-density.training_value(u, context).mean()).backward()
        optimizer.step()
        schedule.step()
    assert isinstance(density, RectifiedFlowDensity)
    return density.eval()


@torch.no_grad()
@pytest.mark.slow
def test_a_gaussian_on_a_grid_has_its_closed_form(fitted: RectifiedFlowDensity) -> None:
    context = torch.tensor([[0.0], [1.0]])
    exact = torch.distributions.MultivariateNormal(mean(context), covariance())
    u = exact.sample((300,))
    expected = exact.log_prob(u)
    found = fitted.log_prob(u, context)
    divergence = float((expected - found).mean())
    assert divergence == pytest.approx(0.0, abs=0.1), "KL(exact || fitted)"
    drawn = fitted.sample(context, 4_000, 2, torch.Generator().manual_seed(0))
    torch.testing.assert_close(drawn.mean(0), mean(context), atol=0.08, rtol=0)
    for number in range(2):
        torch.testing.assert_close(drawn[:, number].T.cov(), covariance(), atol=0.1, rtol=0)


def network(**settings: int) -> GridVelocityNetwork:
    torch.manual_seed(1)
    found = RectifiedFlow(width=32, blocks=2, **settings).build_network(LatentSpace.grid(3, 4, 4), 5)
    assert isinstance(found, GridVelocityNetwork)
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return found.double()


@torch.no_grad()
@pytest.mark.parametrize("patch", [1, 2])
def test_every_place_reads_every_other_and_knows_where_it_is(patch: int) -> None:
    velocity = network(patch=patch)
    u, t = torch.randn(2, 3, 48, dtype=torch.float64), torch.rand(3, dtype=torch.float64)
    condition = velocity.condition(torch.randn(3, 5, dtype=torch.float64))
    plain = velocity(u, t, condition)
    assert plain.shape == u.shape
    changed = u.clone()
    changed[..., 0] += 1
    assert ((velocity(changed, t, condition) - plain).abs() > 1e-9).all(), "one number reaches all places"

    def rolled(flat: Tensor) -> Tensor:
        return flat.unflatten(-1, (3, 4, 4)).roll((patch, patch), (-2, -1)).flatten(-3)

    moved = velocity(rolled(u), t, condition)
    assert (moved - rolled(plain)).abs().max() > 1e-3, "places differ by their positions"
    velocity.positions.zero_()
    torch.testing.assert_close(velocity(rolled(u), t, condition), rolled(velocity(u, t, condition)))


@torch.no_grad()
def test_patches_hold_the_right_places() -> None:
    """With blocks that do nothing, a place is moved by its own patch alone."""
    velocity = network(patch=2)
    for block in velocity.blocks:
        block.modulation.weight.zero_()
        block.modulation.bias.zero_()
    u, t = torch.randn(1, 48, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    condition = velocity.condition(torch.randn(1, 5, dtype=torch.float64))
    changed = u.unflatten(-1, (3, 4, 4)).clone()
    changed[0, 1, 3, 2] += 1  # channel 1, in the patch of rows 2 and 3 and columns 2 and 3
    difference = (velocity(changed.flatten(1), t, condition) - velocity(u, t, condition)).unflatten(-1, (3, 4, 4))[0]
    assert (difference[:, 2:, 2:].abs() > 1e-9).all()
    assert not difference[:, :2].any() and not difference[:, :, :2].any()


@pytest.mark.slow
@torch.no_grad()
def test_draws_and_densities_do_not_depend_on_how_they_are_cut_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    family = RectifiedFlow(width=16, blocks=1, heads=2, steps=2, density_steps=1)
    density = family.build_density(LatentSpace.grid(1, 2, 2), 2).double().eval()
    for parameter in density.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    contexts = torch.randn(5, 2, dtype=torch.float64)
    found = []
    for entries in (2**22, 4 * 64 * 3):
        monkeypatch.setattr("mmgen.densities.rectified_flow._ENTRIES", entries)
        u = density.sample(contexts, 7, 5, torch.Generator().manual_seed(0))
        found.append((u, density.log_prob(u, contexts), density.log_prob(u[:, :1], contexts)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    assert found[0][1].shape == found[0][2].shape == (7, 5)


@torch.no_grad()
def test_random_probes_agree_with_the_exact_trace_within_their_error() -> None:
    found = []
    for probes in (None, 32):
        torch.manual_seed(6)
        family = RectifiedFlow(width=16, blocks=2, heads=2, density_steps=2, probes=probes)
        density = family.build_density(LatentSpace.grid(2, 4, 4), 2).double().eval()
        for parameter in density.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        u, context = torch.randn(3, 2, 32, dtype=torch.float64), torch.randn(2, 2, dtype=torch.float64)
        assert isinstance(density, RectifiedFlowDensity)
        found.append(density.log_prob_with_error(u, context))
    (exact, none), (estimate, error) = found
    assert none is None and error is not None and bool((error > 0).all())
    assert float(((estimate - exact) / error).abs().max()) < 4


def test_the_space_chooses_the_network() -> None:
    family = RectifiedFlow()
    vector, grid = (family.build_density(space, 3) for space in (LatentSpace.flat(80), LatentSpace.grid(5, 4, 4)))
    assert isinstance(vector, RectifiedFlowDensity) and isinstance(grid, RectifiedFlowDensity)
    assert (vector.density_steps, vector.probes) == (32, 8) and (grid.density_steps, grid.probes) == (8, 16)
    assert isinstance(family.build_network(LatentSpace.flat(12), 3), VectorVelocityNetwork)
    assert isinstance(family.build_network(LatentSpace({"z1": (2, 4, 4), "z2": 3}), 3), VectorVelocityNetwork)
    for sides, tokens in (((8, 8), 64), ((4, 4), 16), ((16, 16), 64), ((12, 8), 24), ((14, 14), 49)):
        chosen = family.build_network(LatentSpace.grid(4, *sides), 3)
        assert isinstance(chosen, GridVelocityNetwork)
        assert len(chosen.positions) == tokens


@pytest.mark.parametrize(
    ("settings", "latent", "words"),
    [
        ({"patch": 3}, LatentSpace.grid(4, 8, 8), r"patch got 3, expected a number that divides both sides of z, 8x8"),
        ({"heads": 5}, LatentSpace.grid(4, 8, 8), r"heads got 5, expected a number that divides .*width, 192"),
        ({"patch": 2}, LatentSpace.flat(8), r"patch got 2, but z is no grid"),
        ({"heads": 2}, LatentSpace.flat(8), r"heads got 2, but z is no grid"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, int], latent: LatentSpace, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        RectifiedFlow(**settings).build_density(latent, 2)


def test_the_loss_in_bf16_is_near_that_in_fp32() -> None:
    torch.manual_seed(4)
    density = RectifiedFlow(width=32, blocks=2).build_density(GRID, 1)
    for parameter in density.parameters():
        parameter.data.add_(0.05 * torch.randn_like(parameter))
    u, context = torch.randn(64, 4), torch.randn(64, 1)
    values = []
    for enabled in (False, True):
        torch.manual_seed(5)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            values.append(density.training_value(u, context))
    assert values[1].dtype == torch.float32
    torch.testing.assert_close(values[0], values[1], rtol=0.05, atol=0.05)
    assert not math.isclose(float(values[0].detach().sum()), float(values[1].detach().sum()), rel_tol=1e-7)
