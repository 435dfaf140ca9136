"""Presets on dSprites: the published networks, by their numbers of parameters, and settings that are taken."""

from itertools import pairwise
from math import prod
from typing import Any

import pytest
import torch
from torch import nn

from mmgen.modalities.image import ImageDescription
from mmgen.models._build import build_model
from mmgen.models._settings import DataSettings
from mmgen.settings.extends import load_preset
from mmgen.training.model_run import read_experiment

SPRITES = DataSettings.from_descriptions(ImageDescription(shape=(1, 64, 64), layout="bits"))
NAMES = (
    "higgins/dsprites-vae", "higgins/dsprites-beta-vae", "burgess/dsprites-capacity", "kim/dsprites-factor-vae",
    "chen/dsprites-beta-tcvae", "locatello/dsprites-beta-vae", "locatello/dsprites-factor-vae",
    "locatello/dsprites-beta-tcvae",
)  # fmt: skip


def dense(*sizes: int) -> int:
    """Parameters of fully connected layers."""
    return sum(prod(pair) + pair[1] for pair in pairwise(sizes))


def convolved(*channels: int) -> int:
    """Parameters of convolutions of 4x4."""
    return sum(16 * before * after + after for before, after in pairwise(channels))


def expected(name: str) -> int:
    """By hand: z has 10 dimensions, with a mean and a log standard deviation each."""
    author = name.split("/")[0]
    if author in ("higgins", "chen"):
        return dense(4096, 1200, 1200, 20) + dense(10, 1200, 1200, 1200, 4096)
    maps = (1, 32, 32, 32, 32) if author == "burgess" else (1, 32, 32, 64, 64)
    hidden = {"burgess": (256, 256), "kim": (128,), "locatello": (256,)}[author]
    flat = 16 * maps[-1]
    down, up = dense(flat, *hidden, 20), dense(10, *hidden[::-1], flat)
    return down + up + convolved(*maps) + convolved(*maps[::-1])


@pytest.mark.parametrize("name", NAMES)
def test_networks_have_the_published_sizes(name: str) -> None:
    settings = read_experiment(load_preset(name))
    objective = settings.build_objective()
    with torch.device("meta"):
        model = build_model(settings.model, objective.demands, SPRITES)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected(name)
    assert objective.demands.modalities == ("image",)


def test_activations_of_the_fully_connected_ones() -> None:
    values: dict[str, Any] = load_preset("higgins/dsprites-beta-vae")
    settings = read_experiment(values)
    assert (settings.training.optimizer, values["objective"]["beta"]) == ("adagrad", 4.0)
    with torch.device("meta"):
        model = build_model(settings.model, settings.build_objective().demands, SPRITES)
    found = [type(part) for part in model.modules() if isinstance(part, nn.ReLU | nn.Tanh)]
    assert sorted(one.__name__ for one in found) == ["ReLU"] * 2 + ["Tanh"] * 3
