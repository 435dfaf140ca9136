"""MLD's first stage: an autoencoder of each modality, with encoders without noise."""

from dataclasses import replace

import torch

import mmgen.objectives
from mmgen.models import build_model
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
    both, image = (model.posterior(batch, inputs) for inputs in (("image", "attributes"), ("image",)))
    torch.testing.assert_close(both.mean[:, 1:], image.mean[:, 1:])  # words say nothing of the picture's z
    assert not torch.allclose(both.mean[:, 0], image.mean[:, 0])
    torch.testing.assert_close(both.log_sd, torch.full_like(both.log_sd, -7.0))
    assert (image.log_sd[:, 0] == 0).all()  # of words that are not given p(z) is what is known
    torch.testing.assert_close(model.decode("image", both.mean), model.decode("image", image.mean))
    # beta 0: the bound is what the decoders make of the encodings, and nothing else.
    bound = OBJECTIVE(model, batch)
    expected = sum(model.log_likelihood(name, both.mean, batch) for name in ("image", "attributes"))
    torch.testing.assert_close(bound.value, expected, rtol=0.01, atol=0.05)
    assert not bound.is_bound


def test_a_shared_z_is_the_mean_of_the_encodings() -> None:
    model, batch = small_model(), small_batch()
    queries = [("image", "attributes"), ("image",), ("attributes",)]
    both, image, words = (model.posterior(batch, inputs) for inputs in queries)
    torch.testing.assert_close(both.mean, (image.mean + words.mean) / 2)
    torch.testing.assert_close(both.sd, image.sd / 2**0.5)
