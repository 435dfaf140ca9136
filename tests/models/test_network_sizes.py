"""Networks that settings ask for and that no memory holds: one sentence names the setting to make smaller."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.core.errors import SettingsError, UsageError
from mmgen.settings.arguments import plain_settings
from tests.posteriors.test_guided_fit import folder, run
from tests.training.test_start import dataset_path, train

__all__ = ["dataset_path", "folder"]  # fixtures

HUGE = [10**9, 2**62, 2**63 - 1]
SHORT: dict[str, Any] = {
    "objective": {"name": "elbo", "modalities": ["image"]},
    "model": {"image_network": {"name": "mlp", "hidden": [8]}},
    "training": {"steps": 1, "batch": 8, "device": "cpu"},
}


@pytest.mark.parametrize("size", HUGE)
def test_a_model_that_no_memory_holds_is_refused(size: int, dataset_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    words = rf"^setting 'model\.latent_size' got {size:,}, and these settings describe networks .* make it smaller$"
    with pytest.raises(SettingsError, match=words):
        train(dataset_path, out, {**SHORT, "model": {**SHORT["model"], "latent_size": size}})
    assert not out.exists()


def test_the_opponent_of_an_objective_that_no_memory_holds_is_refused(dataset_path: Path, tmp_path: Path) -> None:
    objective = {"name": "factor-vae", "modalities": ["image"], "discriminator_width": 2**62}
    with pytest.raises(SettingsError, match=r"^setting 'objective\.discriminator_width' got .* make it smaller$"):
        train(dataset_path, tmp_path / "m.safetensors", {**SHORT, "objective": objective})


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize(
    ("family", "name"),
    [
        (lambda size: {"name": "realnvp", "steps": 1, "hidden": [size, 8]}, "hidden"),
        (lambda size: {"name": "mixture", "components": size}, "components"),
    ],
)
def test_a_fit_that_no_memory_holds_is_refused(size: int, family: Any, name: str, folder: Path) -> None:
    with pytest.raises(SettingsError) as refusal:
        run(folder, "huge", {"family": family(size)})
    assert str(refusal.value).startswith(f"setting 'aggregate.family.{name}' got {size:,}, and these")


def test_settings_of_python_hold_numbers_of_64_bits_and_no_dates() -> None:
    with pytest.raises(UsageError, match=r"latent_size got 10.*, expected a whole number of at most 64 bits"):
        plain_settings({"model": {"latent_size": 10**400}})
    with pytest.raises(UsageError, match="expected text, a number"):
        plain_settings({"examples": np.datetime64("NaT")})
