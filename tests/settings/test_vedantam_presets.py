"""The presets of Vedantam et al. take a step on data of their kind, and say what distinguishes them."""

from typing import Any

import numpy as np
import pytest
import torch

from mmgen.models._build import build_model
from mmgen.settings.config import merge
from mmgen.settings.extends import load_preset
from mmgen.settings.presets import preset_names as preset_names
from mmgen.training.batches import make_batch
from mmgen.training.model_run import ExperimentSettings, read_experiment

VEDANTAM = [name for name in preset_names() if name.startswith("vedantam/")]
DIGITS = {"names": ["digit", "scale"], "values": [list("0123456789"), ["big", "small"]]}
FACES = {"names": [f"attribute {a}" for a in range(18)], "values": [["no", "yes"]] * 18}


def settings_of(name: str) -> ExperimentSettings:
    """A preset's settings for the data that it is for."""
    faces = "celeba" in name
    image = {"kind": "image", "shape": [3 if faces else 1, 64, 64], "layout": "bytes" if faces else "bits"}
    attributes = {"kind": "attributes", **(FACES if faces else DIGITS)}
    data: dict[str, Any] = {"modalities": {"image": image, "attributes": attributes}}
    return read_experiment(merge(load_preset(name), {"data": data}))


@pytest.mark.slow_cases("vedantam/bivcca-celeba", "vedantam/bivcca-mnist-a-compositional", "vedantam/bivcca-mnist-a")
@pytest.mark.parametrize("name", VEDANTAM)
def test_a_step_of_every_preset(name: str) -> None:
    settings = settings_of(name)
    objective = settings.build_objective()
    torch.manual_seed(0)
    model = build_model(settings.model, objective.demands, settings.data)
    assert settings.data.image is not None and settings.data.attributes is not None
    generator = np.random.default_rng(0)
    images = torch.rand(2, *settings.data.image.shape).round()
    codes = np.stack([generator.integers(0, len(v), 2) for v in settings.data.attributes.values], 1)
    bound = objective(
        model,
        make_batch(settings.data.modalities, {"image": images, "attributes": torch.from_numpy(codes).byte()}),
        step=1,
    )
    assert bound.value.isfinite().all()
    (-bound.value.mean()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_faces_have_their_own_latents_and_likelihood_and_new_combinations_their_own_split_and_schedule() -> None:
    for objective in ("telbo", "jmvae", "bivcca"):
        faces, unseen = (settings_of(f"vedantam/{objective}-{data}") for data in ("celeba", "mnist-a-compositional"))
        assert (faces.model.latent_size, faces.model.image_likelihood) == (18, "quantised-normal")  # VE Appendix A.4
        assert (unseen.data.split, unseen.training.steps) == ("compositional", 160_000)
        assert faces.objective["name"] == unseen.objective["name"] == objective
