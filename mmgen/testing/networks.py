"""Checks of families of image networks and of classifier networks."""

import math

import torch

import mmgen.classifier
import mmgen.networks
from mmgen.core.errors import SettingsError
from mmgen.modalities.image import ImageDescription
from mmgen.settings.config import build_member
from mmgen.testing.small import refuses

__all__ = [
    "check_classifier_network_shape",
    "check_classifier_features",
    "check_classifier_network",
    "check_network",
    "check_network_shape",
]

_SHAPES = ((1, 64, 64), (3, 32, 32))
_CANVASES = ((1, 16, 16), (1, 28, 28), (3, 32, 32), (1, 50, 50), (1, 64, 64))


def check_network(name: str) -> None:
    """Check a family of image networks: shapes, gradients, dependence on inputs, and refusal of misspelt settings."""
    for shape in _SHAPES:
        check_network_shape(name, shape)
    with refuses(SettingsError, "no_setting_is_called_so"):
        build_member(mmgen.networks, {"name": name, "no_setting_is_called_so": 1}, "network")


def check_network_shape(name: str, shape: tuple[int, int, int]) -> None:
    """Check shapes, gradients and dependence on inputs of image networks for one image shape (C, H, W)."""
    torch.manual_seed(0)
    member = mmgen.networks.get(name)
    network, size = member(**member.settings_for_sides(shape[1:])), 7
    if member.keeps_places:
        grid = (2, shape[1] // 8, shape[2] // 8)
        network, size = network.on_places(grid), math.prod(grid)
    encoder, features = network.encoder(shape)
    decoder = network.decoder(size, shape)
    encoded = encoder(torch.rand(4, *shape))
    assert encoded.shape == (4, features), f"features are {tuple(encoded.shape)}, expected {(4, features)}"
    assert not torch.allclose(encoded[0], encoded[1]), "features of different images are equal"
    decoded = decoder(torch.randn(4, size))
    assert decoded.shape == (4, *shape), f"decoded images are {tuple(decoded.shape)}, expected {(4, *shape)}"
    assert not torch.allclose(decoded[0], decoded[1]), "images decoded from different inputs are equal"
    (encoded.sum() + decoded.square().sum()).backward()
    for part in (encoder, decoder):
        untrained = [key for key, parameter in part.named_parameters() if parameter.grad is None]
        assert untrained == [], f"no gradient reaches {untrained}"


def check_classifier_network(name: str) -> None:
    """Check that a classifier network takes images of every size, and that logits are affine in its features."""
    for shape in _CANVASES:
        check_classifier_network_shape(name, shape)
    check_classifier_features(name)


def check_classifier_network_shape(name: str, shape: tuple[int, int, int]) -> None:
    """Check that images of a shape (C, H, W) give one vector of logits for each attribute."""
    with torch.device("meta"):  # shapes without arithmetic
        network = mmgen.classifier.get(name).for_description(ImageDescription(shape=shape, layout="bytes"), (2, 5))
        logits = network.eval()(torch.rand(3, *shape))
    assert [tuple(part.shape) for part in logits] == [(3, 2), (3, 5)]


def check_classifier_features(name: str) -> None:
    """Check that features are finite, differ between pictures, and determine all logits by an affine function."""
    torch.manual_seed(0)
    described = ImageDescription(shape=(1, 16, 16), layout="bytes")
    network = mmgen.classifier.get(name).for_description(described, (2, 5, 5, 2, 5, 5), 3).eval()
    images, hints = torch.rand(4, 1, 16, 16), torch.eye(3)[[0, 1, 2, 0]]
    with torch.inference_mode():
        features = network.features(images, hints)
        assert features.ndim == 2 and features.shape[0] == 4
        assert features.isfinite().all()
        assert (features >= 0).all()  # after the non-linearity
        assert torch.cdist(features, features).fill_diagonal_(1).min() > 0
        logits = network(images, hints)
        for part, again in zip(logits, network.logits(features), strict=True):
            torch.testing.assert_close(part, again)
        between = network.logits(features.mean(0, keepdim=True))
        for part, middle in zip(logits, between, strict=True):
            torch.testing.assert_close(part.mean(0, keepdim=True), middle, rtol=1e-3, atol=1e-4)
        assert not torch.equal(network.features(images, hints.roll(1, 1)), features)
