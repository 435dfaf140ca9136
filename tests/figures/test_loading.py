"""What a person calls on a loaded model: the examples of the docstrings, and what is refused."""

import doctest
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.evaluation.likelihoods import log_likelihood
from mmgen.generation import TrainedModel, load
from tests.small_data import write_small

MODEL, FITTED = "mnist-a-telbo.safetensors", "mnist-a-telbo-aggregate-realnvp.safetensors"


@pytest.fixture(scope="module")
def folder(stubs: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and an aggregate with the names, sizes and attributes of the examples."""
    folder = tmp_path_factory.mktemp("examples")
    data, generator = folder / "data.h5", np.random.default_rng(0)
    codes = np.stack([np.arange(60) % 10, np.arange(60) // 10 % 2], 1).astype(np.uint8)
    pictures = generator.integers(0, 2, (60, 1, 64, 64), np.uint8)
    known = {"digit": list("0123456789"), "scale": ["small", "big"]}
    write_small(data, {"image": pictures, "attributes": codes}, known, None, (40, 10), "bits", recipe="mnist-a")
    tables = {"embedding": 4, "hidden": 8, "decoder_hidden": 8}
    stubs.train_tiny(data, folder / MODEL, {"name": "telbo"}, 10, attribute_network=tables)
    stubs.fit_tiny(folder / MODEL, data, folder / FITTED, "aggregate", "attributes")
    stubs.train_tiny(data, folder / "elbo.safetensors", {"name": "elbo"}, 10, attribute_network=tables)
    stubs.fit_tiny(folder / "elbo.safetensors", data, folder / "elbo-true.safetensors", "true", "attributes")
    return folder


@pytest.mark.parametrize(
    "called", [load, TrainedModel.sample, TrainedModel.encode, TrainedModel.posterior, log_likelihood]
)
def test_examples_run(called: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert called.__doc__ is not None
    text = called.__doc__.replace("# doctest: +SKIP", "")  # the files are here
    examples = doctest.DocTestParser().get_doctest(text, {}, called.__qualname__, None, 0)
    assert len(examples.examples) > 2
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=said.append)
    assert not failed, "".join(said)


def test_a_fitted_posterior_is_named_with_how_to_draw_from_it(folder: Path) -> None:
    fitted, lonely = load(folder / FITTED), load(folder / "elbo-true.safetensors")
    with pytest.raises(
        UsageError, match=r"posteriors\['aggregate'\].*; posterior=\"own\" selects the encoder of .*telbo"
    ):
        fitted.posterior("digit=3")
    own = fitted.posterior("digit=3", posterior="own")
    torch.testing.assert_close(own.mean, load(folder / MODEL).posterior("digit=3").mean)
    assert fitted.posterior("digit=3", posterior="prior").mean.abs().max() == 0
    with pytest.raises(UsageError, match=r"draw from it with sample\(...\) or posteriors\['true'\].sample\(...\)$"):
        lonely.posterior("digit=3")
    with pytest.raises(UsageError, match=r"unknown posterior 'own'.*prior, true"):
        lonely.posterior("digit=3", posterior="own")
    with pytest.raises(
        UsageError,
        match=r"has no encoder of descriptions; fit a posterior with: mmgen fit-aggregate \S+elbo.safetensors",
    ):
        load(folder / "elbo.safetensors").posterior("digit=3")
    with pytest.raises(UsageError, match="no fitted posterior 'true'"):
        fitted.posterior("digit=3", posterior="true")


def test_images_are_taken_as_a_dataset_has_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(folder / MODEL)
    grey = np.random.default_rng(0).integers(0, 256, (2, 1, 64, 64)).astype(np.uint8)
    with pytest.raises(UsageError, match="image got values from 0 to 255, expected 0 to 1, or uint8"):
        model.encode(grey)
    with pytest.raises(UsageError, match="expected 0 to 1"):
        log_likelihood(model, grey.astype(np.float32))
    assert model.image is not None
    monkeypatch.setattr(TrainedModel, "observation", model.image.model_copy(update={"layout": "bytes"}))
    torch.testing.assert_close(model.encode(grey).mean, model.encode(grey / 255.0).mean)


def test_pictures_come_from_codes_and_words_in_one_call_each(folder: Path) -> None:
    model = load(folder / FITTED)
    with Dataset.open(model.dataset_path()) as data:
        images, codes = data.read_image("image", slice(0, 3)), data.read_attributes("attributes", slice(0, 3))
    z = model.encode(images).mean
    torch.testing.assert_close(model.decode(z), model.model.mean("image", z))
    assert model.decode(np.zeros((2, 5, z.shape[1]))).shape == (2, 5, 1, 64, 64)
    torch.testing.assert_close(model.reconstruct(images), model.decode(z))
    torch.testing.assert_close(model.reconstruct(images, codes), model.decode(model.encode(images, codes).mean))
    drawn = model.draw("3 small", n=2, seed=1)
    assert [(each.mode, each.size) for each in drawn] == [("L", (64, 64))] * 2
    levels = np.stack([np.asarray(each) for each in drawn])[:, None] / 255
    assert np.abs(levels - model.sample("digit=3 scale=small", n=2, seed=1).numpy()).max() <= 0.5 / 255 + 1e-6
    with pytest.raises(UsageError, match=r"z got an array \[3\], expected latents \[..., 10\]"):
        model.decode(np.zeros(3))
    with pytest.raises(UsageError, match=r"decoders of .* read z alone, got a description too; leave it out"):
        model.decode(z, description="digit=3")
    with pytest.raises(UsageError, match="unknown modality 'text'"):
        model.decode(z, target="text")


def test_a_conditional_model_decodes_with_words(stubs: SimpleNamespace, folder: Path) -> None:
    stubs.train_tiny(folder / "data.h5", folder / "cvae.safetensors", {"name": "cvae"}, 10)
    model = load(folder / "cvae.safetensors")
    with Dataset.open(model.dataset_path()) as data:
        images, codes = data.read_image("image", slice(0, 2)), data.read_attributes("attributes", slice(0, 2))
    z = model.encode(images, codes).mean
    one = model.decode(z[1:], description="digit=1 small")
    torch.testing.assert_close(model.reconstruct(images, codes)[1:], one)
    assert not torch.equal(one, model.decode(z[1:], description="digit=2"))
