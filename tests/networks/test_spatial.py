"""Networks that keep places: what lies where in a picture lies there in z, and back."""

import pytest
import torch
from torch import nn

from mmgen.core.errors import SettingsError
from mmgen.networks import Grid, GridHead, GridReader, get
from mmgen.networks.spatial import Spatial

SMALL = Spatial(width=32)


@pytest.mark.parametrize(
    ("sides", "grid"),
    [
        ((64, 64), (4, 8, 8)),
        ((32, 32), (4, 8, 8)),
        ((32, 48), (2, 4, 6)),
        ((28, 28), (3, 7, 7)),
        ((16, 16), (1, 16, 16)),
    ],
)
def test_sides_of_pictures_are_those_of_z_times_a_power_of_two(sides: tuple[int, int], grid: Grid) -> None:
    network = SMALL.on_places(grid)
    encoder, features = network.encoder((3, *sides))
    assert features == 32 * grid[1] * grid[2]
    decoder = network.decoder(grid[0] * grid[1] * grid[2] + 5, (6, *sides))
    z = torch.randn(2, grid[0] * grid[1] * grid[2] + 5)
    assert encoder(torch.rand(2, 3, *sides)).shape == (2, features)
    assert decoder(z).shape == (2, 6, *sides)


@pytest.mark.parametrize("grid", [(4, 8, 8), (4, 5, 5), (4, 28, 14), (4, 56, 56)])
def test_other_sides_are_refused(grid: Grid) -> None:
    with pytest.raises(
        SettingsError, match=rf"got places {grid[1]}x{grid[2]} for images of 28x28, expected both sides"
    ):
        SMALL.on_places(grid).encoder((1, 28, 28))


def test_a_vector_is_refused_and_other_networks_refuse_a_grid() -> None:
    with pytest.raises(SettingsError, match=r"use --set model\.latent_size="):
        SMALL.encoder((1, 32, 32))
    with pytest.raises(SettingsError, match=r"got \[4, 8, 8\], a grid, but image network spatial-transformer knows"):
        get("spatial-transformer")().on_places((4, 8, 8))


def without_norms(network: nn.Module) -> nn.Module:
    """The network with norms, which look at all places together, replaced by nothing."""
    for module in network.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.GroupNorm):
                setattr(module, name, nn.Identity())
    return network


def test_a_place_of_z_sees_its_surroundings_and_draws_them() -> None:
    torch.manual_seed(0)
    network = SMALL.on_places((2, 16, 16))
    encoder = without_norms(network.encoder((1, 64, 64))[0])
    image = torch.rand(1, 1, 64, 64, requires_grad=True)
    maps = encoder(image).unflatten(1, (32, 16, 16))
    (seen,) = torch.autograd.grad(maps[0, :, 4, 4].sum(), image)
    rows, columns = seen[0, 0].nonzero().unbind(1)
    assert rows.min() >= 0 and rows.max() < 40 and columns.max() < 40, "not the far corner"
    assert seen[0, 0, 16:20, 16:20].abs().min() > 0, "its own pixels"

    decoder = without_norms(network.decoder(512, (1, 64, 64)))
    z = torch.randn(1, 512)
    moved = z.clone().unflatten(1, (2, 16, 16))
    moved[0, :, 4, 4] += 1
    changed = (decoder(moved.flatten(1)) - decoder(z))[0, 0].abs()
    assert changed[16:20, 16:20].max() > 0 and not changed[44:, 44:].any()


def test_the_head_keeps_places_with_and_without_words() -> None:
    torch.manual_seed(0)
    for others in (0, 3):
        head = GridHead((2, 4, 4), 5 * 16 + others, 5 * 16, 7, nn.SiLU())
        features = torch.randn(1, 5 * 16 + others)
        changed = features.clone()
        changed[:, 6] += 1  # feature 0 at row 1 and column 2
        difference = (head(changed) - head(features)).unflatten(1, (4, 4, 4))[0]
        assert difference[:, 1, 2].abs().min() > 0
        difference[:, 1, 2] = 0
        assert not difference.any()
    said = features.clone()
    said[:, -1] += 1
    assert ((head(said) - head(features)).abs() > 0).float().mean() > 0.9, "words reach all places"


def test_words_are_read_from_all_places() -> None:
    torch.manual_seed(0)
    reader, features = GridReader().build((2, 4, 4))
    z = torch.randn(1, 32, requires_grad=True)
    assert reader(z).shape == (1, features)
    assert torch.autograd.grad(reader(z).sum(), z)[0].abs().min() > 0
