"""Reading and translating by models whose posterior is no single Gaussian, against draws and tables of their own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.generation import TrainedModel, load
from mmgen.generation.encode import attribute_probabilities
from mmgen.generation.translations import decode
from mmgen.posteriors import LayeredPosterior
from mmgen.training.model_run import complete_settings, train_model
from tests.posteriors.test_encodings import write_dataset

SMALL: dict[str, Any] = {
    "hierarchical-vae": ("elbo", {"latent_sizes": [3, 2], "hidden": [8]}),
    "semi-supervised-vae": ("semi-supervised", {"latent_size": 2}),
}
EVERY_KIND = pytest.mark.parametrize("kind", SMALL)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("layered") / "tiny.h5")


@pytest.fixture(scope="module")
def models(data: Path) -> dict[str, TrainedModel]:
    """One of each kind, barely trained, whose decoder of attributes hears z."""
    found = {}
    for kind, (objective, sizes) in SMALL.items():
        values = {
            "objective": {"name": objective},
            "model": {"name": kind, "image_network": {"name": "mlp", "hidden": [8]}, **sizes},
            "training": {"steps": 2, "batch": 8, "device": "cpu"},
        }
        out = data.with_name(f"{kind}.safetensors")
        with Dataset.open(data) as dataset:
            settings = complete_settings(values, dataset)
        train_model(data, settings, out).run()
        found[kind] = load(out)
        with torch.no_grad():
            for parameter in found[kind].model.label_weights():
                parameter *= 3
    return found


@pytest.fixture(scope="module")
def pictures(data: Path) -> np.ndarray:
    with Dataset.open(data) as dataset:
        return dataset.read_image("image", np.arange(6)).astype(np.float32)


@EVERY_KIND
def test_attributes_are_read_from_draws_of_the_posterior(
    kind: str, models: dict[str, TrainedModel], pictures: np.ndarray
) -> None:
    """E_q(z|x) p(y|z), or q(y|x) where it is known; the same of the same seed, however torch's generator stands."""
    loaded = models[kind]
    found = []
    for noise in (0, 1):
        torch.manual_seed(noise)
        found.append(attribute_probabilities(loaded, pictures, draws=2_000, seed=5))
    assert (found[0] == found[1]).all()
    q = loaded.encode(pictures)
    assert isinstance(q, LayeredPosterior)
    with torch.no_grad():
        z = loaded.model.posterior(q.points, ("image",)).sample(torch.Generator().manual_seed(0), (20_000,))
        expected = loaded.model.mean("attributes", z).double()
    error = 5 * expected.std(0) * (1 / 2_000 + 1 / 20_000) ** 0.5
    assert (np.abs(found[0] - expected.mean(0).numpy()) <= error.numpy() + 1e-6).all()
    assert expected.std(0).max() > 0.02, "p(y|z) hardly depends on z"


def test_labels_that_are_part_of_z_are_as_sure_as_the_model_is(
    models: dict[str, TrainedModel], pictures: np.ndarray
) -> None:
    loaded = models["semi-supervised-vae"]
    read = attribute_probabilities(loaded, pictures)
    q = loaded.encode(pictures)
    assert isinstance(q, LayeredPosterior)
    table = loaded.model.label_log_probabilities("attributes", q.points, ("image",))
    assert table is not None
    np.testing.assert_allclose(read, table.exp().detach().numpy(), atol=5e-3)  # the encoder's own arithmetic is bf16
    assert read.max() < 0.95
    np.testing.assert_allclose(read.sum(-1), 1, atol=1e-6)
    by_name = attribute_probabilities(loaded, {"image": pictures})
    np.testing.assert_allclose(by_name, read, atol=5e-3)


@EVERY_KIND
def test_translations_are_draws_each_with_its_own_layers(
    kind: str, models: dict[str, TrainedModel], pictures: np.ndarray
) -> None:
    """Draws differ, two calls agree, an example's draws do not depend on the others, and their mean is that of q."""
    loaded = models[kind]
    drawn = []
    for noise in (0, 1):
        torch.manual_seed(noise)
        drawn.append(loaded.translate(pictures, draws=4, seed=2))
    assert drawn[0].shape == (4, 6, 1, 16, 16)
    assert torch.equal(drawn[0], drawn[1])
    assert (drawn[0][0] - drawn[0][1]).abs().amax((1, 2, 3)).min() > 1e-3
    alone = loaded.translate(pictures[4:5], draws=4, seed=2, rows=[4])
    torch.testing.assert_close(alone[:, 0], drawn[0][:, 4], rtol=0, atol=1e-5)
    many = loaded.translate(pictures[:2], draws=2_000, seed=3).double()
    q = loaded.encode(pictures[:2])
    assert isinstance(q, LayeredPosterior)
    with torch.no_grad():
        z = loaded.model.posterior(q.points, ("image",)).sample(torch.Generator().manual_seed(0), (2_000,))
        expected = decode(loaded, "image", z).double()
    error = 5 * ((many.var(0) + expected.var(0)) / 2_000).sqrt()
    assert ((many.mean(0) - expected.mean(0)).abs() <= error + 1e-6).all()


@EVERY_KIND
def test_means_and_what_is_decoded_from_them_are_the_same_twice(
    kind: str, models: dict[str, TrainedModel], pictures: np.ndarray
) -> None:
    loaded, found = models[kind], []
    for noise in (0, 1):
        torch.manual_seed(noise)
        found.append((loaded.encode(pictures).mean, loaded.translate(pictures), loaded.translate(pictures[2:3])))
    for first, second in zip(*found, strict=True):
        assert torch.equal(first, second)
    torch.testing.assert_close(found[0][1][2], found[0][2][0], rtol=0, atol=1e-5)


@EVERY_KIND
def test_a_posterior_of_layers_is_no_gaussian(kind: str, models: dict[str, TrainedModel], pictures: np.ndarray) -> None:
    q = models[kind].encode(pictures)
    assert q.log_prob(q.sample(torch.Generator().manual_seed(0), (3,))).shape == (3, 6)
    with pytest.raises(UsageError, match="draw from it with sample"):
        _ = q.sd
