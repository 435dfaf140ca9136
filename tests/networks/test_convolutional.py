"""The convolutional networks of Wu and Goodman, held to the numbers of parameters of their Table 1."""

import pytest
import torch
from torch import nn

from mmgen.core.errors import SettingsError
from mmgen.networks.convolutional import Convolutional
from mmgen.networks.mlp import Mlp

FASHION = Convolutional(channels=(64, 128), strides=(2, 2), paddings=(1, 1), batch_norm=False, dropout=0.0)
MULTIMNIST = Convolutional(strides=(2, 2, 2, 2), decoder_fully_connected=())
CELEBA = Convolutional(decoder_fully_connected=())


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    ("network", "shape", "latent", "published"),
    [
        (Mlp(), (1, 28, 28), 64, 730_240),
        (FASHION, (1, 28, 28), 64, 3_409_536),
        (MULTIMNIST, (1, 50, 50), 100, 1_316_936),
        (CELEBA, (3, 64, 64), 100, 4_070_472),
    ],
    ids=["MNIST", "Fashion-MNIST", "MultiMNIST", "CelebA"],
)
def test_inference_networks_of_images_have_as_many_parameters_as_published(
    network: Convolutional, shape: tuple[int, int, int], latent: int, published: int
) -> None:
    """WG Table 1, row VAE: the encoder and a linear layer to the mean and deviation of z."""
    encoder, features = network.encoder(shape)
    assert count(encoder) + count(nn.Linear(features, 2 * latent)) == published


@pytest.mark.parametrize(
    ("network", "shape", "kernels"),
    [
        (FASHION, (1, 28, 28), [(4, 4)] * 2),
        (MULTIMNIST, (1, 50, 50), [(4, 4), (4, 4), (5, 5), (4, 4)]),
        (CELEBA, (3, 64, 64), [(4, 4)] * 4),
        (CELEBA, (1, 64, 50), [(4, 4), (4, 4), (4, 5), (4, 4)]),
    ],
    ids=["Fashion-MNIST", "MultiMNIST", "CelebA", "oblong"],
)
def test_decoders_end_at_the_side_of_the_image(
    network: Convolutional, shape: tuple[int, int, int], kernels: list[tuple[int, int]]
) -> None:
    decoder = network.decoder(6, shape)
    assert decoder(torch.randn(3, 6)).shape == (3, *shape)
    assert [m.kernel_size for m in decoder.modules() if isinstance(m, nn.ConvTranspose2d)] == kernels


def test_batch_norm_is_next_to_no_pixel() -> None:
    for part, norms in (
        (CELEBA.encoder((3, 64, 64))[0], [64, 128, 256]),
        (CELEBA.decoder(4, (3, 64, 64)), [128, 64, 32]),
    ):
        assert [m.num_features for m in part.modules() if isinstance(m, nn.BatchNorm2d)] == norms
    assert not any(isinstance(m, nn.BatchNorm2d) for m in FASHION.encoder((1, 28, 28))[0].modules())


def test_the_decoder_mirrors_the_fully_connected_layers_unless_it_is_told() -> None:
    mirrored = [m for m in FASHION.decoder(64, (1, 28, 28)).modules() if isinstance(m, nn.Linear)]
    assert [(m.in_features, m.out_features) for m in mirrored] == [(64, 512), (512, 128 * 7 * 7)]
    (only,) = (m for m in CELEBA.decoder(100, (3, 64, 64)).modules() if isinstance(m, nn.Linear))
    assert (only.in_features, only.out_features) == (100, 256 * 5 * 5)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(SettingsError, match="got 2 channels, 4 strides and 4 paddings"):
        Convolutional(channels=(8, 8)).encoder((1, 32, 32))
    with pytest.raises(SettingsError, match="images of 12x40, which are too small for its 4 layers"):
        Convolutional().decoder(3, (1, 12, 40))
