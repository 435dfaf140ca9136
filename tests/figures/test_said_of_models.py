"""What is said of a model is true of the model, and not only of the data that it was trained on."""

from pathlib import Path

import pytest

from mmgen.commands._exporting import write_card
from mmgen.generation import load

HAS = {
    "labels": {"image", "attributes"},
    "elbo": {"image", "attributes"},
    "both": {"image", "attributes", "text"},
    "jmvae": {"image", "text"},
    "cvae": {"image", "attributes"},
    "bare": {"image"},
    "elbo-attributes": {"image", "attributes"},
}


@pytest.mark.parametrize("name", HAS)
def test_a_model_is_said_to_be_of_the_modalities_that_its_objective_looks_at(readers: Path, name: str) -> None:
    """Its data have pictures, attributes and captions, each with words of its own for what it is."""
    loaded = load(readers / f"{name}.safetensors")
    assert set(loaded.settings.data.modalities) == {"image", "attributes", "text"}
    assert set(loaded.settings.modalities) == HAS[name]
    card = write_card(loaded, {}, [], [], "")
    for said in (repr(loaded), loaded._repr_html_(), card):
        found = {part for part, each in loaded.settings.data.modalities.items() if each.describe_size() in said}
        assert found == HAS[name], said
