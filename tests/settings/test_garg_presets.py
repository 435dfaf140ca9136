"""The presets of the review by Garg et al., and of the beta-VAE that FactorVAE is compared with."""

from pathlib import Path

import numpy as np

from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.models._build import build_model
from mmgen.settings.extends import load_preset
from mmgen.training.model_run import complete_settings


def parameters(name: str, side: int, layout: str, scheme: str, folder: Path) -> int:
    """Numbers in the model of a preset, of pictures of a size."""
    with DatasetWriter(folder / "data.h5", size=20, settings={"recipe": "none"}, seed=0) as writer:
        writer.add_image("image", (1, side, side), layout)
        writer.write(0, {"image": np.zeros((20, 1, side, side), np.uint8)})
        writer.add_splits(scheme, train=range(10), val=range(10, 15), test=range(15, 20))
    with Dataset.open(folder / "data.h5") as dataset:
        settings = complete_settings(load_preset(name), dataset)
    assert settings.build_objective().demands.generates == ("image",)
    model = build_model(settings.model, settings.build_objective().demands, settings.data)
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_vae_of_the_review_is_784_400_20_and_back(tmp_path: Path) -> None:
    encoder, decoder = 785 * 400 + 401 * 40, 21 * 400 + 401 * 784
    assert parameters("garg/mnist", 28, "bytes", "official", tmp_path) == encoder + decoder


def test_the_networks_of_kim_and_mnih(tmp_path: Path) -> None:
    """Kernels of 4x4, 64 -> 32 -> 16 -> 8 -> 4 pixels, 64 * 4 * 4 numbers to 128 to ten means and log sds, and back.

    Besides 321 biases of convolutions: 32 + 32 + 64 + 64, and 64 + 32 + 32 + 1.
    """
    kernels = 16 * (1 * 32 + 32 * 32 + 32 * 64 + 64 * 64)
    encoder, decoder = kernels + 1025 * 128 + 129 * 20, 11 * 128 + 129 * 1024 + kernels
    assert parameters("kim/dsprites-beta-vae", 64, "bytes", "iid", tmp_path) == encoder + decoder + 321
