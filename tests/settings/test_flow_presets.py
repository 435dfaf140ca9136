"""Presets with a z of places build models for the pictures that they are for."""

from typing import Any

import pytest

from mmgen.models._build import build_model
from mmgen.settings.config import merge
from mmgen.settings.extends import load_preset
from mmgen.training.model_run import read_experiment


@pytest.mark.parametrize(
    ("preset", "side"), [("flow/pictures", 32), ("flow/pictures", 64), ("flow/two-objects-cpu", 64)]
)
def test_presets_with_places_build_models(preset: str, side: int) -> None:
    modalities = {
        "image": {"kind": "image", "shape": [3, side, side], "layout": "bytes"},
        "attributes": {"kind": "attributes", "names": ["colour"], "values": [["red", "blue"]]},
        "text": {"kind": "text", "vocabulary": ["red", "blue"], "length": 1},
    }
    data: dict[str, Any] = {"data": {"modalities": modalities}}
    settings = read_experiment(merge(load_preset(preset), data))
    model = build_model(settings.model, settings.build_objective().demands, settings.data)
    assert model.latent.shapes == {"z": (4, 8, 8)}
    assert settings.model.image_network["name"] == "spatial"
    assert model.has_posterior(("image",)) and not model.has_posterior(("text",))
