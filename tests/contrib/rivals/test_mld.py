"""MLD's first stage: an autoencoder of each modality, with encoders without noise."""

from dataclasses import replace

import pytest
import torch
from pydantic import ValidationError

import mmgen.objectives
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.generation.encodings import traversable_axes
from mmgen.models import MultimodalSettings, build_model
from mmgen.settings.extends import load_preset
from mmgen.testing.small import SMALL_DATA, SMALL_MODEL, small_batch

OBJECTIVE = mmgen.objectives.get("elbo")(given=("image", "attributes"), beta=0)


def small_model(**settings: object) -> torch.nn.Module:
    torch.manual_seed(0)
    attributes = replace(SMALL_MODEL.attribute_network, experts="together")
    whole = SMALL_MODEL.model_copy(update={"inference": "deterministic", "attribute_network": attributes, **settings})
    return build_model(whole, OBJECTIVE.demands, SMALL_DATA).eval()


def test_without_a_shared_z_each_modality_is_an_autoencoder_of_its_own() -> None:
    model = small_model(latent_size=0, private_sizes={"image": 2, "attributes": 1})
    assert model.latent.layers == {"z of attributes": 1, "z of image": 2}
    batch = small_batch()
    both = model.posterior(batch, ("image", "attributes"))
    shuffled = Batch(batch.values | {"image": batch.values["image"].flip(0)}, batch.present)
    other = model.posterior(shuffled, ("image", "attributes"))
    torch.testing.assert_close(both.mean[:, :1], other.mean[:, :1])  # a picture says nothing of the z of words
    torch.testing.assert_close(both.mean[:, 1:], other.mean[:, 1:].flip(0))  # nor words of the z of a picture
    torch.testing.assert_close(both.log_sd, torch.full_like(both.log_sd, -7.0))
    z = both.mean.clone()
    z[:, 0] += 1
    torch.testing.assert_close(model.decode("image", z), model.decode("image", both.mean))
    # beta 0: the bound is what the decoders make of the encodings, and nothing else.
    bound = OBJECTIVE(model, batch)
    expected = sum(model.log_likelihood(name, both.mean, batch) for name in ("image", "attributes"))
    torch.testing.assert_close(bound.value, expected, rtol=0.01, atol=0.05)
    assert not bound.is_bound


def test_modalities_that_share_nothing_have_no_posterior_alone() -> None:
    model = small_model(latent_size=0, private_sizes={"image": 2, "attributes": 1})
    for given in (("image",), ("attributes",)):
        with pytest.raises(UsageError, match="fit this posterior with mmgen fit-aggregate"):
            model.posterior(small_batch(), given)
    assert traversable_axes(model) == ("z of image", [1, 2])  # pictures do not see the z of words
    blind = mmgen.objectives.get("elbo")(beta=0)  # whose posterior is given the image alone
    settings = SMALL_MODEL.model_copy(
        update={"inference": "deterministic", "latent_size": 0, "private_sizes": {"image": 2, "attributes": 1}}
    )
    for objective in (blind, mmgen.objectives.get("mvtcae")(), mmgen.objectives.get("jmvae")()):
        with pytest.raises(SettingsError, match=r"latent_size got 0.* needs a posterior given (image|attributes);"):
            build_model(settings, objective.demands, SMALL_DATA)


@pytest.mark.parametrize("size", [-1, 0.5, True, "big", [2, 0, 2]])
def test_a_size_of_z_that_is_none_is_refused_in_one_clause(size: object) -> None:
    with pytest.raises(ValidationError) as error:
        MultimodalSettings.model_validate({"latent_size": size})
    assert [each["msg"] for each in error.value.errors()] == [
        "Value error, expected a number of 0 or more, or [channels, height, width] of at least 1 each"
    ]


def test_the_preset_trains_points_that_nothing_holds_to_the_prior() -> None:
    settings = load_preset("rivals/mld")
    assert settings["objective"]["beta"] == 0 and set(settings["objective"]["given"]) == {"image", "attributes"}
    assert settings["model"]["latent_size"] == 0 and settings["model"]["inference"] == "deterministic"


def test_a_shared_z_is_the_mean_of_the_encodings() -> None:
    model, batch = small_model(), small_batch()
    queries = [("image", "attributes"), ("image",), ("attributes",)]
    both, image, words = (model.posterior(batch, inputs) for inputs in queries)
    torch.testing.assert_close(both.mean, (image.mean + words.mean) / 2)
    torch.testing.assert_close(both.sd, image.sd / 2**0.5)
