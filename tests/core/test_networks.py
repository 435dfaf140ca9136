"""Every family of image networks keeps its promises; lookups equal what they abbreviate."""

import pytest
import torch
import torch.nn.functional as F

import mmgen.networks
from mmgen.errors import SettingsError
from mmgen.networks._attributes import AttributeNetwork, AttributeTables
from mmgen.networks.spatial_transformer import _DrawAndPlace


@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 32, 32)], ids=["64x64 grey", "32x32 colour"])
@pytest.mark.parametrize("name", mmgen.networks.names())
def test_contract(name: str, shape: tuple[int, int, int]) -> None:
    """Shapes, gradients to all weights, and outputs that depend on inputs."""
    torch.manual_seed(0)
    network = mmgen.networks.get(name)()
    encoder, features = network.encoder(shape)
    decoder = network.decoder(7, shape)
    images = torch.rand(4, *shape)
    encoded = encoder(images)
    assert encoded.shape == (4, features)
    assert not torch.allclose(encoded[0], encoded[1])
    decoded = decoder(torch.randn(4, 7))
    assert decoded.shape == (4, *shape)
    assert not torch.allclose(decoded[0], decoded[1])
    (encoded.sum() + decoded.square().sum()).backward()
    for part in (encoder, decoder):
        assert all(p.grad is not None for p in part.parameters())


@pytest.mark.parametrize("name", mmgen.networks.names())
def test_misspelt_settings_are_refused(name: str) -> None:
    with pytest.raises(Exception, match=r"(?i)unexpected"):
        mmgen.networks.get(name)(chanels=(8,))


@pytest.mark.parametrize("name", ["strided", "dcgan"])
def test_sides_that_do_not_fit_are_named(name: str) -> None:
    network = mmgen.networks.get(name)()
    side = 30 if name == "strided" else 7
    with pytest.raises(SettingsError, match=f"{side}x{side}"):
        network.decoder(4, (1, side, side))


def test_coordinates_equal_those_of_torch() -> None:
    decoder = _DrawAndPlace(5, (1, 16, 24), 8, (16, 16), -6.0, "relu")
    affine = torch.randn(3, 2, 3)
    expected = F.affine_grid(affine, [3, 1, 16, 24], align_corners=False)
    torch.testing.assert_close(decoder._grid(affine), expected)


def test_the_sheet_is_placed_where_the_map_says() -> None:
    """A sheet full of ink at a quarter of the canvas: background elsewhere."""
    decoder = _DrawAndPlace(2, (1, 32, 32), 8, (4, 4), -6.0, "relu")
    with torch.no_grad():
        for layer in (decoder.draw[-1], decoder.place[-1]):
            layer.weight.zero_()
        decoder.draw[-1].bias.fill_(8.0)
        # Canvas x in [-1, 0] covers the sheet's [-1, 1]: sheet x = 2 canvas x + 1, the same for y.
        decoder.place[-1].bias.copy_(torch.tensor([2.0, 0.0, 1.0, 0.0, 2.0, 1.0]))
        drawn = decoder(torch.randn(1, 2))[0, 0]
    assert torch.allclose(drawn[2:14, 2:14], torch.tensor(2.0))
    assert torch.allclose(drawn[18:, :], torch.tensor(-6.0))
    assert torch.allclose(drawn[:, 18:], torch.tensor(-6.0))


@pytest.mark.parametrize(
    ("name", "sides", "settings"),
    [
        ("strided", [64, 32], {}),
        ("strided", [24], {"patch": 2}),
        ("strided", [28, 64], {"patch": 2, "channels": [32, 64]}),
        ("strided", [50], {}),  # nothing fits: the network says so
        ("residual", [64, 32], {}),
        ("residual", [24], {"channels": [32, 64, 96]}),
        ("residual", [28, 64], {"patch": 1, "channels": [32, 64, 96]}),
        ("residual", [50], {}),
    ],
)
def test_a_network_follows_the_sides_of_images(name: str, sides: list[int], settings: dict[str, object]) -> None:
    member = mmgen.networks.get(name)
    assert member.for_sides(sides) == settings
    if settings:
        network, features = member(**settings).encoder((1, sides[0], sides[0]))
        assert network(torch.rand(2, 1, sides[0], sides[0])).shape == (2, features)


def test_a_cell_of_the_residual_decoder_sees_where_it_lies_and_all_of_z() -> None:
    torch.manual_seed(0)
    decoder = mmgen.networks.get("residual")(blocks=1, width=8).decoder(3, (2, 32, 32)).eval()
    z = torch.randn(1, 3, requires_grad=True)
    with torch.no_grad():
        for parameter in decoder.coarse.parameters():
            parameter.zero_()  # without the coarse map only coordinates tell cells apart
    pixels = decoder(z)[0, 0]
    corners = [pixels[y : y + 4, x : x + 4] for y in (4, 24) for x in (4, 24)]  # away from the padded rim
    assert all(not torch.allclose(one, other) for one in corners for other in corners if one is not other)
    for corner in corners:
        (gradient,) = torch.autograd.grad(corner.sum(), z, retain_graph=True)
        assert (gradient != 0).all()


def test_tables_of_attributes_equal_the_network_on_each_example() -> None:
    torch.manual_seed(0)
    tables = AttributeTables((3, 2), 5, AttributeNetwork(embedding=4, hidden=8))
    codes = torch.tensor([[2, 0], [0, 1], [1, 1]])
    present = torch.tensor([[True, True], [False, True], [True, False]])
    looked_up = tables(codes, present)
    for row in range(3):
        for a, size in enumerate((3, 2)):
            index = codes[row, a] if present[row, a] else torch.tensor(size)
            expected = tables.networks[a](tables.embeddings[a](index))
            torch.testing.assert_close(looked_up[row, a], expected)
