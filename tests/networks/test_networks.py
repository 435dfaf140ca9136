"""Every family of image networks keeps its promises; lookups equal what they abbreviate."""

from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from scipy.stats import kstest

import mmgen.classifier
import mmgen.networks
from mmgen.core.errors import SettingsError
from mmgen.modalities.image import ImageDescription
from mmgen.networks._attributes import AttributeNetwork, AttributeTables, AttributeVectorEncoder, attribute_decoder
from mmgen.networks._base import Conv2d, ConvTranspose2d
from mmgen.networks.mlp import Mlp
from mmgen.networks.spatial_transformer import _DrawAndPlace
from mmgen.settings.config import build_member
from mmgen.testing.models import check_network_shape


@pytest.mark.slow_cases("cyclegan-resnet-64x64 grey")
@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 32, 32)], ids=["64x64 grey", "32x32 colour"])
@pytest.mark.parametrize("name", mmgen.networks.names())
def test_contract(name: str, shape: tuple[int, int, int]) -> None:
    check_network_shape(name, shape)


@pytest.mark.parametrize("name", mmgen.networks.names())
def test_misspelt_settings_are_refused(name: str) -> None:
    with pytest.raises(Exception, match=r"(?i)unexpected"):
        mmgen.networks.get(name)(chanels=(8,))


@pytest.mark.parametrize(
    ("channels", "said"),
    [
        ([], r"'network.channels' got \[\], expected a list of at least 1"),
        ("big", "'network.channels' got 'big', expected a list"),
        ([8, 0], r"'network\.channels\[2\]' got 0, expected greater than or equal to 1"),
    ],
)
def test_wrong_lists_are_told_in_a_sentence(channels: object, said: str) -> None:
    with pytest.raises(SettingsError, match=said + "$"):
        build_member(mmgen.networks, {"name": "spatial-broadcast", "channels": channels}, "network")


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
    torch.testing.assert_close(decoder._sampling_grid(affine), expected)


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


def test_z_decides_the_colour_of_the_canvas() -> None:
    decoder = _DrawAndPlace(2, (3, 16, 16), 8, (4, 4), 0.0, "relu", grounds=True)
    assert decoder.ground is not None
    z = torch.randn(4, 2)
    with torch.no_grad():
        decoder.draw[-1].weight.zero_()
        mask = decoder.draw[-1].bias.fill_(2.0).unflatten(0, (4, 8, 8))[3]
        mask.fill_(-40.0)
        drawn, ground = decoder(z), decoder.ground(z)[:, :, None, None]
        mask.fill_(40.0)
        covered = decoder(z)
    assert ground.std(0).min() > 0
    torch.testing.assert_close(drawn, ground.expand_as(drawn))
    torch.testing.assert_close(covered[..., 6:10, 6:10], torch.full((4, 3, 4, 4), 2.0))  # whatever the ground is
    torch.testing.assert_close(covered[..., :1, :], ground.expand_as(drawn)[..., :1, :])


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
        ("spatial-broadcast", [64, 32], {}),
        ("spatial-broadcast", [28, 64], {"patch": 4}),
        ("spatial-broadcast", [50], {"patch": 2, "cell": 2}),
        ("spatial-broadcast", [25], {"patch": 1, "cell": 1}),
    ],
)
def test_a_network_follows_the_sides_of_images(name: str, sides: list[int], settings: dict[str, object]) -> None:
    member = mmgen.networks.get(name)
    assert member.settings_for_sides(sides) == settings
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


def test_a_broadcast_cell_is_drawn_from_its_coordinates_and_z_alone() -> None:
    """A network of one cell, given the same coordinates and z by hand, draws the same pixels (Watters et al., 2019)."""
    torch.manual_seed(0)
    decoder = mmgen.networks.get("spatial-broadcast")(width=8, hidden=(5,)).decoder(3, (2, 32, 24))
    z = torch.randn(4, 3)
    pixels = decoder(z)
    assert decoder.coordinates.shape == (1, 2, 8, 6)
    for row, column in ((0, 0), (7, 5), (3, 2)):
        where = torch.tensor([-1 + 2 * row / 7, -1 + 2 * column / 5])
        first, *rest, last, shuffle = decoder.draw
        value = first(decoder.where(where[None, :, None, None]) + decoder.what(decoder.hidden(z))[:, :, None, None])
        for layer in rest:
            value = layer(value)
        drawn = shuffle(last(value))
        torch.testing.assert_close(pixels[:, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4], drawn)


def test_the_published_spatial_broadcast_decoder_looks_at_neighbours() -> None:
    """Cells of one pixel and convolutions of 3 x 3: what a place is told reaches as far as the layers do."""
    torch.manual_seed(0)
    settings = {"cell": 1, "kernel": 3, "hidden": (), "width": 4, "activation": "elu"}
    decoder = mmgen.networks.get("spatial-broadcast")(**settings).decoder(3, (1, 16, 16))
    told = torch.zeros_like(decoder.coordinates)
    told[..., 8, 8] = 0.5
    z = torch.randn(1, 3)
    with torch.no_grad():
        before = decoder(z)
        decoder.coordinates += told
        changed = (decoder(z) != before)[0, 0].nonzero()
    assert changed.amin(0).tolist() == [4, 4] and changed.amax(0).tolist() == [12, 12]  # four layers


@pytest.mark.parametrize("layers", [1, 2])
def test_first_vectors_of_values_are_those_of_an_embedding(layers: int) -> None:
    """WG's published nn.Embedding(10, 512): N(0, 1); of binary attributes nn.Linear(18, 512): uniform in 1/sqrt(18)."""
    torch.manual_seed(0)
    settings = AttributeNetwork(experts="together", hidden=512)
    digits = AttributeVectorEncoder((10,), settings, layers).layers[0]
    assert kstest(digits.weight.detach().flatten().numpy(), "norm").pvalue > 0.01
    assert digits.bias is None
    faces = AttributeVectorEncoder((2,) * 18, settings, layers).layers[0]
    bound = 18**-0.5
    assert kstest(faces.weight.detach().flatten().numpy(), "uniform", (-bound, 2 * bound)).pvalue > 0.01
    both = AttributeVectorEncoder((2, 10, 2, 3), settings, layers).layers[0]
    binary = both.weight.detach()[:, [0, 11]].flatten().numpy()
    several = both.weight.detach()[:, [*range(1, 11), 12, 13, 14]].flatten().numpy()
    bound = 15**-0.5
    assert kstest(binary, "uniform", (-bound, 2 * bound)).pvalue > 0.01
    assert kstest(several, "norm").pvalue > 0.01


def test_a_tables_first_vectors_are_those_of_an_embedding() -> None:
    torch.manual_seed(0)
    tables = AttributeTables((10, 2), 4, AttributeNetwork(embedding=512, hidden=8))
    for embedding in tables.embeddings:
        assert kstest(embedding.weight.detach().flatten().numpy(), "norm").pvalue > 0.01


@pytest.mark.parametrize("experts", ["each", "together"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_decoders_of_attributes_have_the_layers_asked_for(experts: Literal["each", "together"], layers: int) -> None:
    settings = AttributeNetwork(experts=experts, decoder_hidden=6, decoder_layers=layers)
    decoder = attribute_decoder(4, (3, 2), settings)
    linear = [layer for layer in decoder.modules() if isinstance(layer, torch.nn.Linear)]
    assert len(linear) == (layers + 1) * (2 if experts == "each" else 1)
    assert decoder(torch.randn(5, 4)).shape == (5, 5)


def test_the_decoder_of_an_mlp_mirrors_its_encoder_unless_told() -> None:
    def sizes(network: torch.nn.Module) -> list[int]:
        return [layer.out_features for layer in network.modules() if isinstance(layer, torch.nn.Linear)]

    assert sizes(Mlp(hidden=(8, 6)).decoder(4, (1, 2, 2))) == [6, 8, 4]
    assert sizes(Mlp(hidden=(8, 6), decoder_hidden=(5, 5, 5)).decoder(4, (1, 2, 2))) == [5, 5, 5, 4]


SIDES = (4, 8, 12, 16, 28, 32, 64)


def small_networks() -> list[tuple[str, int, torch.nn.Module]]:
    """Every network of pictures, judges among them, at every side that it takes."""
    made: list[tuple[str, int, torch.nn.Module]] = []
    for side in SIDES:
        for name in mmgen.networks.names():
            member = mmgen.networks.get(name)
            for settings in ({}, member.settings_for_sides([side])):
                try:
                    network = member(**settings)
                    if member.keeps_places:
                        network = network.on_places((4, 1, 1))
                    pair = [network.encoder((1, side, side))[0], network.decoder(4, (1, side, side))]
                except SettingsError:  # says that it does not take this side
                    continue
                made += [(name, side, part) for part in pair]
        described = ImageDescription(shape=(1, side, side), layout="bytes")
        made += [(n, side, mmgen.classifier.get(n).for_description(described, (3,))) for n in mmgen.classifier.names()]
    return made


@pytest.mark.slow
def test_every_convolution_is_right_over_single_places() -> None:
    """torch's bf16 convolutions over maps of 1x1 leave gradients uninitialised, so none of them is used as it is."""
    kinds = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d, torch.nn.ConvTranspose2d)
    with torch.device("meta"):
        networks = small_networks()
    found = 0
    for name, side, network in networks:
        for layer in network.modules():
            if isinstance(layer, kinds):
                found += 1
                assert type(layer) in (Conv2d, ConvTranspose2d), f"{name} at {side}x{side}"
    assert found > 100


@pytest.mark.parametrize("make", [Conv2d, ConvTranspose2d])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (5, 2), (5, 1), (3, 1)])
def test_gradients_over_single_places_are_those_of_fp32(make: type[torch.nn.Module], kernel: int, stride: int) -> None:
    torch.manual_seed(0)
    layer = make(32, 64, kernel, stride, kernel // 2, bias=False)
    maps, direction = torch.rand(16, 32, 1, 1), torch.randn(16, 64, 1, 1)
    (expected,) = torch.autograd.grad((layer(maps) * direction).sum(), [layer.weight])
    for _ in range(4):
        del_me = [
            torch.full((size,), torch.nan, dtype=torch.bfloat16) for size in (1 << 12, 1 << 15, 32 * 64 * kernel**2)
        ]
        del del_me  # memory that the next tensors get is full of NaN
        with torch.autocast("cpu", torch.bfloat16):
            value = layer(maps)
        (found,) = torch.autograd.grad((value.float() * direction).sum(), [layer.weight])
        torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)


def test_the_small_judge_learns_from_pictures_of_8x8_in_bf16() -> None:
    for seed in range(12):
        torch.manual_seed(seed)
        judge = mmgen.classifier.get("small")((1, 8, 8), (10,), 0)
        with torch.autocast("cpu", torch.bfloat16):
            logits = judge(torch.rand(64, 1, 8, 8))[0]
        torch.nn.functional.cross_entropy(logits.float(), torch.arange(64) % 10).backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in judge.parameters())


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
