"""Words that are read off pictures by a network on a fixed encoder."""

from pathlib import Path

import pytest

from mmgen.contrib.scan.objectives.reader import Reader
from mmgen.models.autoencoder import AutoencoderSettings
from tests.codecs.conftest import tiny as tiny
from tests.codecs.test_autoencoder import batch_of, made, smooth_pictures


@pytest.mark.parametrize("generates", [("attributes",), ("image", "attributes")])
def test_the_decoder_is_trained_only_if_pictures_are_generated(generates: tuple[str, ...], tiny: Path) -> None:
    objective = Reader(modalities=generates)
    model = made(AutoencoderSettings(weights=str(tiny)), objective.demands)
    objective(model, batch_of(smooth_pictures(3))).value.mean().backward()
    trained = {name for name, each in model.named_parameters() if each.grad is not None and each.grad.abs().sum() > 0}
    assert any(name.startswith("decoders.attributes") for name in trained)
    assert any(name.startswith("decoders.image") for name in trained) == ("image" in generates)
    assert not any(name.startswith("encoder") for name in trained)
    assert model.encodes_once == ("" if "image" in generates else "image")
