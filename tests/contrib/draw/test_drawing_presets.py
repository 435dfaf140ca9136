"""Presets of DRAW and alignDRAW, and the conditional VAEs of captions that they are compared with."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.models import Model, MultimodalSettings, build_model
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.networks import TextNetwork
from mmgen.objectives.cvae import Cvae
from mmgen.settings.extends import load_preset
from mmgen.testing.small import SMALL_MODEL
from mmgen.training.model_run import complete_settings
from tests.contrib.draw.test_draw import CAPTIONED, captioned_batch
from tests.small_data import write_small

WORDS = [f"w{number}" for number in range(22)]
"""As many as captions of MNIST have."""


def build_preset(name: str, side: int, folder: Path) -> Model:
    values = {"image": np.zeros((20, 1, side, side), np.uint8), "text": np.zeros((20, 12), np.uint16)}
    parts = dict.fromkeys(("official", "heldout", "iid"), (range(10), range(10, 15), range(15, 20)))
    write_small(folder / "data.h5", values, None, (WORDS, ()), parts)
    with Dataset.open(folder / "data.h5") as dataset:
        settings = complete_settings(load_preset(name), dataset)
    return build_model(settings.model, settings.build_objective().demands, settings.data)


def count(name: str, side: int, folder: Path) -> int:
    return sum(parameter.numel() for parameter in build_preset(name, side, folder).parameters())


@pytest.mark.parametrize(
    ("name", "side", "expected"),
    [
        ("gregor/mnist", 28, 959_467),
        ("mansimov/mnist-captions", 60, 2_371_746 - 2 * 4 * 128),  # the authors' code has an unused word more
    ],
)
def test_presets_have_the_published_number_of_parameters(name: str, side: int, expected: int, tmp_path: Path) -> None:
    assert count(name, side, tmp_path) == expected


@pytest.mark.parametrize("rival", ["fc", "conv"])
def test_rivals_have_as_many_parameters(rival: str, tmp_path: Path) -> None:
    ours = count("mansimov/mnist-captions-cpu", 28, tmp_path)
    (tmp_path / "data.h5").unlink()
    assert count(f"mansimov/mnist-captions-{rival}-cpu", 28, tmp_path) == pytest.approx(ours, rel=0.05)


def text_cvae(**changes: Any) -> MultimodalVAE:
    torch.manual_seed(0)
    settings = SMALL_MODEL.model_copy(update={"text_network": TextNetwork(4, 5, dropout=0.0), **changes})
    model = build_model(settings, Cvae(description="text").demands, CAPTIONED)
    assert isinstance(model, MultimodalVAE)
    return model


def test_a_conditional_vae_reads_texts() -> None:
    """Its decoder sees the caption; an absent one is zeros, whatever its codes."""
    model, batch = text_cvae(), captioned_batch()
    batch = Batch({**batch.values, "image": batch.values["image"].float()}, batch.present)
    bound = Cvae(description="text")(model, batch)
    assert bound.is_bound and bound.value.shape == (5,)
    bound.value.mean().backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    z = torch.zeros(2, 5, model.latent_size)
    drawn = model.decode("image", z, batch)
    assert drawn.shape == (2, 5, 1, 16, 16)
    assert len(drawn[0].flatten(1).unique(dim=0)) == 5
    order = torch.tensor([4, 2, 0, 1, 3])
    torch.testing.assert_close(model.decode("image", z, batch[order]), drawn[:, order])
    absent = batch | Batch({}, {"text": torch.zeros(5, dtype=torch.bool)})
    assert len(model.decode("image", z, absent)[0].flatten(1).unique(dim=0)) == 1
    assert model.conditional_on == ("text",)
    assert set(model.condition_encoder.parameters()) <= {  # type: ignore[union-attr]
        parameter for network in model.generative_networks() for parameter in network.parameters()
    }


def test_a_conditional_vae_of_pictures_is_refused() -> None:
    with pytest.raises(SettingsError, match="conditions on image, expected attributes or text"):
        build_model(MultimodalSettings(), Cvae(observation="text", description="image").demands, CAPTIONED)
